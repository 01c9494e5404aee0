"""Workers in a job on a Slurm cluster: sbatch, and torchrun once on each node.

The run's folder has to be one that all nodes share. It is in the home directory, which clusters
share, or where DDP_LESSONS_SHARED says. The job waits in the queue like any other, and that time
counts: give a long timeout on a busy cluster. sbatch's own variables, SBATCH_PARTITION and
SBATCH_ACCOUNT for example, choose what a cluster wants chosen.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from signal import SIGTERM

from ddp_lessons import collect, lifeline, remote
from ddp_lessons.engines import torchrun
from ddp_lessons.engines.marked import Marked, begin
from ddp_lessons.run import say

BATCH, LOG, ID, REFUSED = "job.sbatch", "job.log", "job_id", "sbatch.log"  # in the run's folder
POLL = 0.1  # seconds between two looks at the folder
ASK = 0.5  # seconds between two questions to Slurm
UNREACHED = ("Could not establish a configuration source", "Unable to contact slurm controller")
LEAVE = 15.0  # seconds for a job whose ranks have all come to their end
# Of a job that has not ended. It goes through "completing" after its last process.
ALIVE = {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "REQUEUED"}

NONE_HERE = (
    'engine="slurm" submits a job with Slurm\'s sbatch, and this machine has no sbatch on its '
    "PATH: launch from a login node of a cluster, or leave engine= out to start the ranks here"
)


def prepare() -> None:
    """Raise RuntimeError, in one sentence, where there is no Slurm."""
    if not is_here():
        raise RuntimeError(NONE_HERE)


def is_here() -> bool:
    return shutil.which("sbatch") is not None


def batch(
    program: Sequence[str],
    world_size: int,
    nnodes: int,
    *,
    name: str,
    minutes: int,
    log: str = "job-%j.log",
    gpus: int = 0,
    torchrun: Sequence[str] = ("torchrun",),
) -> str:
    """The file for sbatch: `world_size` ranks of `program` on `nnodes` nodes, and on each node a
    torchrun that starts its share. `gpus`: for each node."""
    ranks = world_size // nnodes
    wish = f"#SBATCH --gpus-per-node={gpus}\n" if gpus else ""
    words = " ".join(map(quoted, torchrun))
    return f"""\
#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --nodes={nnodes}
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task={ranks}
{wish}#SBATCH --time={minutes // 60:02}:{minutes % 60:02}:00
#SBATCH --output={log}

# This file runs on the first node of the job: there the torchruns meet, at a port of this job's.
# srun starts one of them on each node. They start the ranks.
srun --cpus-per-task={ranks} --kill-on-bad-exit=1 \\
    {words} \\
    --nnodes={nnodes} \\
    --nproc-per-node={ranks} \\
    --rdzv-id="$SLURM_JOB_ID" \\
    --rdzv-backend=c10d \\
    --rdzv-endpoint="$(hostname):$((20000 + SLURM_JOB_ID % 20000))" \\
    {" ".join(map(quoted, program))}
"""


def quoted(word: str) -> str:
    """The word for a shell, as it is where it needs no quotes."""
    plain = all(c.isalnum() or c in "-_./=:%" for c in word)
    return word if plain else "'" + word.replace("'", "'\\''") + "'"


class Engine(Marked):
    """The ranks of one job. `_starters` is the one process here that keeps the job: see keep()."""

    def start(self, deadline: float) -> None:
        job = self._job
        text = batch(
            ["-m", "ddp_lessons.bootstrap", "remote", str(job.folder)],
            job.world_size,
            job.nnodes,
            name="ddp-lessons",
            minutes=max(1, math.ceil((deadline - time.monotonic()) / 60)),
            log=str(job.folder / LOG).replace("%", "%%"),
            gpus=job.gpus,
            torchrun=[sys.executable, "-m", "torch.distributed.run"],
        )
        (job.folder / BATCH).write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "ddp_lessons.engines.slurm", str(job.folder)]
        keeper = begin(command, job.machine_env(0), job.folder / REFUSED)
        self._starters.append(keeper)
        while not self._has_begun() and keeper.poll() is None:
            if time.monotonic() > deadline:
                reason = queued(job_number(job.folder), "%r")
                self.held_up = f"the job waits in the queue (Slurm says: {reason or 'nothing'})"
                return
            time.sleep(POLL)
        if not (job.folder / ID).exists():
            keeper.wait()
            said = collect.read_whole(job.folder / REFUSED).replace("sbatch: ", "").split("\n")
            reason = " ".join(line.strip() for line in said if line.strip())
            nowhere = any(sign in reason for sign in UNREACHED)
            told = "sbatch found no cluster" if nowhere else f"sbatch refused the job: {reason}"
            raise say(RuntimeError(told))
        self._running = set(range(job.world_size))

    def _has_begun(self) -> bool:
        return any(self._job.folder.glob("attempt_*/rank_*/events.jsonl"))

    def ended(self, done: bool) -> dict[int, int | None]:
        ends = super().ended(done)
        # A torchrun says which of its ranks was killed long before sbatch says that the job ended.
        reported = {rank: self.reported_code(rank) for rank in self._running - set(ends)}
        known = {rank: code for rank, code in reported.items() if code not in (None, -SIGTERM)}
        return known | ends

    def reported_code(self, rank: int) -> int | None:
        text = collect.read_whole(self._job.folder / LOG)
        return torchrun.reported(text, rank)

    def is_alive(self, pid: int) -> bool:
        return True  # a process of another machine: what Slurm says of the job has to do

    def ask(self, ranks: Collection[int], number: int) -> None:
        (self._job.folder / remote.ASKED).touch()

    def kill_ranks(self) -> list[int]:
        return []  # their ids mean nothing here


def keep(folder: Path) -> None:
    """Submit the job of the launch in `folder`, and stay until it has ended. Cancel it when the
    launching process lets go of the lifeline, however that comes about."""
    os.setsid()  # out of reach of Stop, and of a kill of the kernel's group
    line = lifeline.reach(folder)
    command = ["sbatch", "--parsable", "--wait", str(folder / BATCH)]
    with open(folder / ID, "wb") as id_file:
        waits = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=id_file)
    while waits.poll() is None:
        if is_cut(line) and (number := job_number(folder)):
            end(folder, number)
            break
        time.sleep(POLL)
    if waits.poll() is None:
        waits.kill()
    if not job_number(folder):
        (folder / ID).unlink()
    waits.wait()


def is_cut(line: int) -> bool:
    with contextlib.suppress(BlockingIOError):
        return not os.read(line, 1)
    return False


def job_number(folder: Path) -> str:
    """The job's number, from what sbatch has printed; "" before that. A cluster's name may follow
    it."""
    text = (folder / ID).read_text()
    return text.partition(";")[0].strip() if text.endswith("\n") else ""


def end(folder: Path, number: str) -> None:
    """Wait until the job has ended; cancel it, unless its ranks have all come to their end."""
    spared = time.monotonic() + (LEAVE if all_finished(folder) else 0)
    cancelled = False
    while queued(number, "%T") in ALIVE:
        if time.monotonic() >= spared and not cancelled:
            subprocess.run(["scancel", number], stdin=subprocess.DEVNULL, check=False)
            # Slurm gives what does not heed SIGTERM half a minute, as a rule. Ranks need none.
            (folder / remote.OVER).touch()
            cancelled = True
        time.sleep(ASK)


def all_finished(folder: Path) -> bool:
    ranks = list(folder.glob(f"attempt_{collect.last_attempt(folder)}/rank_*"))
    ends = [collect.read_events(one).get("ended", {}) for one in ranks]
    return bool(ends) and all(end.get("finished") for end in ends)


def queued(number: str, what: str) -> str:
    """What squeue says of the job: "%T" is its state, "%r" why it waits. "" for a job that Slurm
    has forgotten."""
    command = ["squeue", "--noheader", "--states=all", f"--format={what}", f"--jobs={number}"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
