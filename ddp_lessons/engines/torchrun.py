"""Workers started by the real torchrun, one agent for each machine (all machines are this one).

Slower than the forkserver by a factor of about fifty, and needed for what only torchrun does: a
group on several machines, and restarts.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path

from ddp_lessons import bootstrap, collect
from ddp_lessons.engines import Job

POLL = 0.02  # seconds between looks at the agents and at the ranks' end markers
HEARD = 0.5  # seconds in which an agent has surely seen a rank's death: it looks every 0.1 s


def prepare() -> None:
    """Nothing can be had in advance: each run is a fresh torchrun."""


def _agent(job: Job, node: int) -> subprocess.Popen:
    command = [
        sys.executable,
        *("-m", "ddp_lessons.bootstrap", "agent", str(job.folder)),
        *arguments(job),
        *("-m", "ddp_lessons.bootstrap", "rank", str(job.folder)),
    ]
    env = job.machine_env(node)
    package = str(Path(bootstrap.__file__).parent.parent)
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [package, env.get("PYTHONPATH")]))
    with open(job.folder / f"agent_{node}.log", "wb") as log:
        return subprocess.Popen(
            command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )


def arguments(job: Job) -> list[str]:
    """torchrun's own arguments: the launching process hosts the rendezvous store, so that two
    agents cannot race for a port."""
    return [
        f"--nnodes={job.nnodes}",
        f"--nproc-per-node={job.world_size // job.nnodes}",
        f"--max-restarts={job.max_restarts}",
        f"--rdzv-id={job.folder.name}",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint=127.0.0.1:{job.port}",
        "--rdzv-conf=is_host=false",
        "--local-addr=127.0.0.1",
        f"--log-dir={job.folder / 'torchrun'}",  # it makes a folder, and would leave it in TMPDIR
    ]


class Engine:
    """The agents of one job, one for each machine. A rank's end is read from its end marker or, for
    a rank that could not write one, from the agents' report."""

    def __init__(self, job: Job):
        self._job = job
        self._agents: list[subprocess.Popen] = []
        self._running: set[int] = set()
        self._dead: set[int] = set()  # the ranks that were first seen dead without an end marker
        self._seen = 0.0  # when that was

    def start(self, deadline: float) -> None:
        for node in range(self._job.nnodes):
            self._agents.append(_agent(self._job, node))
            self._running = set(range(self._job.world_size))

    def running(self) -> set[int]:
        return set(self._running)

    def wait(self, seconds: float) -> dict[int, int | None]:
        deadline = time.monotonic() + seconds
        while True:
            done = all(agent.poll() is not None for agent in self._agents)
            ended = self._ended(done)
            if ended or time.monotonic() >= deadline:
                self._running.difference_update(ended)
                return ended
            time.sleep(min(POLL, max(0.0, deadline - time.monotonic())))

    def _ended(self, agents_done: bool) -> dict[int, int | None]:
        attempt = collect.last_attempt(self._job.folder)
        if attempt < self._job.max_restarts and not agents_done:
            return {}  # a rank that ends now may be started again
        ends, dead = {}, set()
        for rank in self._running:
            events = collect.read_events(bootstrap.rank_folder(self._job.folder, attempt, rank))
            if "ended" in events:
                ends[rank] = events["ended"]["code"]
            elif "started" in events and not _is_alive(events["started"]["pid"]):
                dead.add(rank)
        if dead and not self._dead:
            self._dead, self._seen = dead, time.monotonic()
        if agents_done:
            ends |= self._unmarked(set(ends))
        elif self._dead and time.monotonic() > self._seen + HEARD:
            # An agent gives the other ranks 30 seconds to heed SIGTERM, and reports after that.
            self._kill_ranks()
        return ends

    def _unmarked(self, marked: set[int]) -> dict[int, int | None]:
        """How the ranks that died by themselves, without an end marker, have ended. The agents have
        ended all others, which count as stopped."""
        lost = (self._dead or self._running) & self._running - marked
        codes = {rank: self._reported_code(rank) for rank in lost}
        ends = {rank: c for rank, c in codes.items() if c != -signal.SIGTERM} or codes
        self._dead = self._dead or set(ends)
        return ends

    def _reported_code(self, rank: int) -> int | None:
        """The exit code of a rank that wrote no end marker, from the agents' failure report."""
        logs = sorted(self._job.folder.glob("agent_*.log"))
        text = "".join(log.read_text(encoding="utf-8", errors="replace") for log in logs)
        found = re.findall(rf"rank\s*: {rank} \(.*\n\s*exitcode\s*: (-?\d+)", text)
        return int(found[-1]) if found else None

    def ask(self, ranks: Collection[int], number: int) -> None:
        attempt = collect.last_attempt(self._job.folder)
        for rank in self._running.intersection(ranks):
            here = bootstrap.rank_folder(self._job.folder, attempt, rank)
            started = collect.read_events(here).get("started")
            if started and _is_alive(started["pid"]):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(started["pid"], number)

    def _kill_ranks(self) -> list[int]:
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
        # The lifeline is closed by now, so a rank that an agent has only just started ends too.
        ranks = self._kill_ranks()
        deadline = time.monotonic() + 5
        # A killed process may live on for a moment. The agents, which reap the ranks, go last.
        while any(map(_is_alive, ranks)) and time.monotonic() < deadline:
            time.sleep(POLL)
        for agent in self._agents:
            # On the lifeline too. It is the agent's guard that is waited for, where there is one.
            with contextlib.suppress(subprocess.TimeoutExpired):
                agent.wait(timeout=10)
            if agent.poll() is None:
                agent.kill()
                agent.wait(timeout=10)
        self._running.clear()


def _is_alive(pid: int) -> bool:
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
