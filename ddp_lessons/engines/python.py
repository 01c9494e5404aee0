"""A script that starts its own ranks: one Python process runs it once, as `python script.py` does.

For mp.spawn() and the like. The script finds the number of ranks as WORLD_SIZE in its environment,
and nothing else of what torchrun sets. A process that it starts is a rank if it is one of
multiprocessing's whose function gets a rank as its first argument, or a Python script with RANK in
its environment, unless it was told to heed none (-E, -I). See own_ranks.py for how they come to
have logs, a ledger and an end marker.
"""

from __future__ import annotations

import os
import sys

from ddp_lessons import bootstrap, collect, own_ranks
from ddp_lessons.engines import Job
from ddp_lessons.engines.marked import Marked, begin

# What torchrun sets, and the script is to do without. One that this process has itself goes too.
TORCHRUNS = ("RANK", "LOCAL_", "GROUP_", "ROLE_", "MASTER_", "TORCHELASTIC_", "TORCHRUN_")

# Python reads a module of this name when an interpreter starts. There may be another one behind it.
HOOK = f"""\
import importlib.util
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

sys.path.remove(str(Path(__file__).parent))
other = PathFinder.find_spec("sitecustomize", sys.path)
if other:
    other.loader.exec_module(importlib.util.module_from_spec(other))
if {own_ranks.RUN!r} in os.environ:
    from ddp_lessons import own_ranks

    own_ranks.arrive()
"""


def prepare() -> None:
    """Nothing can be had in advance: each run is a fresh Python."""


class Engine(Marked):
    """The script's own process, and the ranks that it starts."""

    def start(self, deadline: float) -> None:
        folder = self._job.folder
        hook = folder / "hook"
        hook.mkdir()
        (hook / "sitecustomize.py").write_text(HOOK, encoding="utf-8")
        env = own_environment(self._job)
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(hook), env.get("PYTHONPATH")]))
        command = [sys.executable, "-m", "ddp_lessons.own_ranks", str(folder)]
        self._starters.append(begin(command, env, folder / "starter.log"))
        self._running = set(range(self._job.world_size))

    def ended(self, done: bool) -> dict[int, int | None]:
        ends = super().ended(done)
        if self._script_is_gone():
            # Its ranks end with it, some a moment later than others.
            return {rank: ends.get(rank) for rank in self._running}
        if not done and self._running == set(ends) and not any(ends.values()):
            # All is well so far, and the script goes on after its ranks: so does the run.
            del ends[max(ends)]
        return ends

    def _script_is_gone(self) -> bool:
        events = collect.read_events(self._job.folder / bootstrap.STARTER)
        # In this order: a process that can still do so writes its end marker before it goes.
        gone = "started" in events and not self.is_alive(events["started"]["pid"])
        return gone and not self._starter_end()

    def reported_code(self, rank: int) -> int | None:
        return self._starter_end().get("codes", {}).get(str(rank))

    def _starter_end(self) -> dict:
        return collect.read_events(self._job.folder / bootstrap.STARTER).get("ended", {})


def own_environment(job: Job) -> dict[str, str]:
    """The environment of a plain `python script.py`, and WORLD_SIZE. Of torchrun's names those stay
    that the caller of launch() gave."""
    env = {
        name: value
        for name, value in job.machine_env(0).items()
        if not name.startswith(TORCHRUNS) or os.environ.get(name) != value
    }
    return env | {"WORLD_SIZE": str(job.world_size)}
