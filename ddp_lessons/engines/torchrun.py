"""Workers started by the real torchrun, one agent for each machine (all machines are this one).

Slower than the forkserver by a factor of about fifty, and needed for what only torchrun does: a
group on several machines, and restarts.
"""

from __future__ import annotations

import re
import sys

from ddp_lessons.engines import Job
from ddp_lessons.engines.marked import Marked, begin


def prepare() -> None:
    """Nothing can be had in advance: each run is a fresh torchrun."""


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


def reported(text: str, rank: int) -> int | None:
    """The exit code of a rank in torchrun's failure report."""
    found = re.findall(rf"rank\s*: {rank} \(.*\n\s*exitcode\s*: (-?\d+)", text)
    return int(found[-1]) if found else None


class Engine(Marked):
    """The agents of one job, one for each machine. Which rank died and how is in their report."""

    def start(self, deadline: float) -> None:
        job = self._job
        command = [
            sys.executable,
            *("-m", "ddp_lessons.bootstrap", "agent", str(job.folder)),
            *arguments(job),
            *("-m", "ddp_lessons.bootstrap", "rank", str(job.folder)),
        ]
        for node in range(job.nnodes):
            log = job.folder / f"agent_{node}.log"
            self._starters.append(begin(command, job.machine_env(node), log))
            self._running = set(range(job.world_size))

    def reported_code(self, rank: int) -> int | None:
        logs = sorted(self._job.folder.glob("agent_*.log"))
        text = "".join(log.read_text(encoding="utf-8", errors="replace") for log in logs)
        return reported(text, rank)
