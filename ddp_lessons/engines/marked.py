"""Ranks that are no children of the launching process: what the engines of such ranks share.

The end of a rank is read from the marker that it writes in its folder. For a rank that could not
write one, it is what those say that started it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Collection
from pathlib import Path

from ddp_lessons import bootstrap, collect
from ddp_lessons.engines import Job

POLL = 0.02  # seconds between looks at the starters and at the ranks' end markers
HEARD = 0.5  # seconds in which a starter has surely seen a rank's death: torchrun looks every 0.1 s


class Marked:
    """The ranks of one job, started by processes of this one: `_starters`. An engine adds start(),
    and says what its starters report."""

    def __init__(self, job: Job):
        self.held_up = ""
        self._job = job
        self._starters: list[subprocess.Popen] = []
        self._running: set[int] = set()
        self._dead: set[int] = set()  # the ranks that were first seen dead without an end marker
        self._seen = 0.0  # when that was

    def reported_code(self, rank: int) -> int | None:
        """The exit code of a rank that wrote no end marker, if its starter said so."""
        raise NotImplementedError

    def running(self) -> set[int]:
        return set(self._running)

    def wait(self, seconds: float) -> dict[int, int | None]:
        deadline = time.monotonic() + seconds
        while True:
            done = self.starters_ended()
            ended = self.ended(done)
            if ended or time.monotonic() >= deadline:
                self._running.difference_update(ended)
                return ended
            time.sleep(min(POLL, max(0.0, deadline - time.monotonic())))

    def starters_ended(self) -> bool:
        return all(starter.poll() is not None for starter in self._starters)

    def ended(self, done: bool) -> dict[int, int | None]:
        """The new ends. `done`: the starters have ended."""
        attempt = collect.last_attempt(self._job.folder)
        if attempt < self._job.max_restarts and not done:
            return {}  # a rank that ends now may be started again
        ends, dead = {}, set()
        for rank in self._running:
            events = collect.read_events(bootstrap.rank_folder(self._job.folder, attempt, rank))
            if "ended" in events:
                ends[rank] = events["ended"]["code"]
            elif "started" in events and not self.is_alive(events["started"]["pid"]):
                dead.add(rank)
        if dead and not self._dead:
            self._dead, self._seen = dead, time.monotonic()
        if done:
            ends |= self._unmarked(set(ends))
        elif self._dead and time.monotonic() > self._seen + HEARD:
            # A starter gives the other ranks 30 seconds to heed SIGTERM, and reports after that.
            self.kill_ranks()
        return ends

    def _unmarked(self, marked: set[int]) -> dict[int, int | None]:
        """How the ranks that died by themselves, without an end marker, have ended. The starters
        have ended all others, which count as stopped."""
        lost = (self._dead or self._running) & self._running - marked
        codes = {rank: self.reported_code(rank) for rank in lost}
        ends = {rank: c for rank, c in codes.items() if c != -signal.SIGTERM} or codes
        self._dead = set(ends) or self._dead  # what SIGTERM has ended is not asked for again
        return ends

    def is_alive(self, pid: int) -> bool:
        return is_alive(pid)

    def ask(self, ranks: Collection[int], number: int) -> None:
        attempt = collect.last_attempt(self._job.folder)
        for rank in self._running.intersection(ranks):
            here = bootstrap.rank_folder(self._job.folder, attempt, rank)
            started = collect.read_events(here).get("started")
            if started and self.is_alive(started["pid"]):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(started["pid"], number)

    def kill_ranks(self) -> list[int]:
        """Kill the group that each rank of each attempt leads, or led and left children in; return
        the ranks' process ids."""
        folders = self._job.folder.glob("attempt_*/rank_*")
        started = [collect.read_events(here).get("started") for here in folders]
        pids = [event["pid"] for event in started if event]
        for pid in pids if hasattr(os, "killpg") else []:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        return pids

    def stop(self) -> None:
        # The lifeline is closed by now, so a rank that has only just been started ends too.
        ranks = self.kill_ranks()
        deadline = time.monotonic() + 5
        # A killed process may live on for a moment. The starters, which reap the ranks, go last.
        while any(map(is_alive, ranks)) and time.monotonic() < deadline:
            time.sleep(POLL)
        for starter in self._starters:
            # On the lifeline too. It is its guard that is waited for, where there is one.
            with contextlib.suppress(subprocess.TimeoutExpired):
                starter.wait(timeout=10)
            if starter.poll() is None:
                starter.kill()
                starter.wait(timeout=10)
        self._running.clear()


def begin(command: list[str], env: dict[str, str], log: Path) -> subprocess.Popen:
    """Start a process that finds this package, reads nothing, and writes to `log`."""
    package = str(Path(bootstrap.__file__).parent.parent)
    paths = [env.get("PYTHONPATH"), package]
    env = {**env, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    with open(log, "wb") as file:
        return subprocess.Popen(
            command, env=env, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT
        )


def is_alive(pid: int) -> bool:
    """Whether the process runs; on Linux one that has ended and waits to be reaped does not."""
    if os.name != "posix":
        return True  # there os.kill(pid, 0) is no question
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except ProcessLookupError:
        return False
    except OSError:
        return not Path("/proc/self/stat").exists()  # no /proc here: it answered, so it runs
    return stat.rpartition(")")[2].split()[0] != "Z"
