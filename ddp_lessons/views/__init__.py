"""Pictures of a Run, one function a file, and the rich forms of what a notebook shows.

A view is a pure function from recorded facts to a Picture. matplotlib is imported when the first
picture is drawn, never before.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

# The public views and the modules that hold them; no module bears its view's name.
_HOMES = {
    "before_after": "number_grid",
    "busiest": "send_counts",
    "bytes_per_device": "device_bytes",
    "calls": "call_lanes",
    "gap_panels": "panels",
    "gradient_arrows": "arrows",
    "links": "link_grid",
    "machines": "rank_grid",
    "meeting": "lanes",
    "memories": "variables",
    "moments": "lanes",
    "parameter_gap": "gap",
    "resumed": "resumption",
    "ring": "ring_steps",
    "sampler": "shard_grid",
    "samples_met": "epochs",
    "shard_map": "shard_grid",
    "starts": "start_lanes",
    "started": "process_tree",
    "timeline": "step_lanes",
    "waits": "waiting",
}
__all__ = [
    "before_after",
    "busiest",
    "bytes_per_device",
    "calls",
    "gap_panels",
    "gradient_arrows",
    "links",
    "machines",
    "meeting",
    "memories",
    "moments",
    "parameter_gap",
    "resumed",
    "ring",
    "sampler",
    "samples_met",
    "shard_map",
    "starts",
    "started",
    "timeline",
    "waits",
]

# The classes that notebooks show as HTML, and the functions that write it: in html.py, or in the
# module that is named.
_REPRS = {
    ("ddp_lessons.run", "Run"): "run",
    ("ddp_lessons.guess", "Comparison"): "comparison",
    ("ddp_lessons.checks.verdict", "Verdict"): "verdict",
    ("ddp_lessons.source", "Source"): "source",
    ("ddp_lessons.machine", "Machine"): "machine",
    ("ddp_lessons.submission", "Submission"): "submission",
    ("ddp_lessons.objectives.asking", "Asked"): "question_list.asked",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"ddp_lessons.views.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def register(shell: InteractiveShell) -> None:
    """Teach this shell the HTML forms. text/plain stays each class's own repr."""
    formatter = shell.display_formatter.formatters["text/html"]
    for (module, kind), function in _REPRS.items():
        formatter.for_type_by_name(module, kind, _late(function))


def _late(function: str) -> Any:
    home, _, name = function.rpartition(".")

    def printer(thing: Any) -> str:
        module = importlib.import_module(f"ddp_lessons.views.{home or 'html'}")
        return getattr(module, name)(thing)

    return printer
