"""DDP Lessons: launch real PyTorch workers from a notebook and see what they did.

    from ddp_lessons import launch, show, views, compare, check

Importing this package in a Jupyter kernel starts the worker server in the background and registers
%%ranks and %%exercise; anywhere else it starts nothing. Names are looked up on first use, so that a
worker, which imports only ddp_lessons.worker, never pays for a notebook's needs.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ddp_lessons.checks.grade import check
    from ddp_lessons.checks.verdict import CheckError, Verdict
    from ddp_lessons.guess import compare
    from ddp_lessons.launcher import launch
    from ddp_lessons.machine import check_machine
    from ddp_lessons.objectives.asking import questions
    from ddp_lessons.run import Run, WorkerError
    from ddp_lessons.source import show
    from ddp_lessons.submission import submit

_HOMES = {
    "check": "checks.grade",
    "CheckError": "checks.verdict",
    "Verdict": "checks.verdict",
    "launch": "launcher",
    "show": "source",
    "compare": "guess",
    "check_machine": "machine",
    "questions": "objectives.asking",
    "submit": "submission",
    "Run": "run",
    "WorkerError": "run",
}
__all__ = [
    "CheckError",
    "Run",
    "Verdict",
    "WorkerError",
    "check",
    "check_machine",
    "compare",
    "launch",
    "questions",
    "show",
    "submit",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"ddp_lessons.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


def _settle_into_notebook() -> None:
    """In IPython: the magic and the rich views. In a kernel: the warm server, the live view."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        return
    from ddp_lessons import magic, views

    if hasattr(shell, "kernel"):
        from ddp_lessons import page
        from ddp_lessons.engines import forkserver

        with contextlib.suppress(OSError):  # a full disk, say: launch() tells it, not an import
            forkserver.prepare()
        page.register(shell)
    magic.register(shell)
    views.register(shell)


_settle_into_notebook()
