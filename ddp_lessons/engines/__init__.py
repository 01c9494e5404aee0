"""The ways to start workers, behind one small interface: workers(name, job) -> Workers.

An engine starts the ranks of a Job, says which have ended, and stops the rest. It knows nothing of
records, reports or notebooks. Adding one means adding one module with prepare() and a class named
Engine that is Workers, and its name here (and in ABLE, if it can do more than start ranks here).
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Protocol

NAMES = ("forkserver", "torchrun", "python", "slurm")
SLOW = {"torchrun": 180}  # those that take long to start, and the most seconds for it
AWAY = ("slurm",)  # those whose ranks may be on other machines than the launching process
# Which of them have what the others have not.
ABLE = {"nnodes": ("torchrun", "slurm"), "max_restarts": ("torchrun",)}


@dataclass(frozen=True)
class Job:
    """What an engine needs to know. `env` is the environment that every rank starts from; the
    TCPStore answers at 127.0.0.1:`port`; `visible` is CUDA_VISIBLE_DEVICES for each machine."""

    folder: Path
    world_size: int
    nnodes: int
    max_restarts: int
    port: int
    env: Mapping[str, str]
    visible: tuple[str | None, ...]
    gpus: int = 0  # for each machine, where they have to be asked for

    def machine_env(self, node: int) -> dict[str, str]:
        """The environment of machine `node`'s ranks before the engine adds RANK and the like."""
        env = dict(self.env)
        if self.visible[node] is not None:
            env["CUDA_VISIBLE_DEVICES"] = self.visible[node]
        return env


class Workers(Protocol):
    """The ranks of one job, from start to end. Engine(job) itself starts nothing. `held_up` is what
    keeps ranks from being started, if start() knows it, else ""."""

    held_up: str

    def start(self, deadline: float) -> None:
        """Start every rank, or as many as can be until `deadline`, in monotonic seconds. If this is
        interrupted, stop() still ends what it had started."""

    def wait(self, seconds: float) -> dict[int, int | None]:
        """Block until a rank ends, at most `seconds`; return the new ends as rank -> exit code.

        Exit codes are negative for signals, None where the engine cannot know them.
        """

    def running(self) -> set[int]:
        """The ranks that were started and whose end wait() has not returned yet."""

    def ask(self, ranks: Collection[int], number: int) -> None:
        """Send the signal of that number to those of these ranks that still run."""

    def stop(self) -> None:
        """End every process of the job that still lives, children included, and wait for that."""


def prepare(name: str) -> None:
    """Let the engine get ready in the background, if it has anything to get ready."""
    _module(name).prepare()


def workers(name: str, job: Job) -> Workers:
    """The job's workers under the engine of that name, not started yet."""
    return _module(name).Engine(job)


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"ddp_lessons.engines.{name}")
