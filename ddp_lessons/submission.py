"""submit(): the file that sbatch wants, and the job itself where there is a Slurm to take it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ddp_lessons import arguments, scripts
from ddp_lessons.engines import slurm
from ddp_lessons.launcher import launch
from ddp_lessons.run import Run, WorkerError


@dataclass(frozen=True)
class Submission:
    """The text of a job file, which is also the text form of this, and what became of the job.

    `run` is what came back, None if nothing did; `note` says in one sentence what happened.
    """

    batch: str
    note: str
    run: Run | None = None

    def __repr__(self) -> str:
        return self.batch.rstrip("\n")


def submit(
    script: str | Path,
    world_size: int = 2,
    *,
    nnodes: int = 1,
    minutes: int = 10,
    limit: float = 60,
) -> Submission:
    """Write the job file that runs `script` on `world_size` ranks on `nnodes` nodes of a Slurm
    cluster, for at most `minutes`; and, where sbatch is on the PATH, run such a job.

    The job is launch(..., engine="slurm"): the same torchrun, and the ranks write records and logs.
    It is cancelled if it has not ended within `limit` seconds, its time in the queue included.
    What becomes of the job is in `note`, never an exception. Raises what launch() raises for its
    arguments.
    """
    arguments.check(world_size, nnodes, 0, "auto", "slurm", limit)
    path = scripts.find(script)
    batch = slurm.batch([path.name], world_size, nnodes, name=path.stem, minutes=minutes)
    if not slurm.is_here():
        return Submission(
            batch, "There is no Slurm here (no sbatch on the PATH): nothing was sent."
        )
    try:
        run = launch(path, world_size, nnodes=nnodes, engine="slurm", timeout=limit)
    except WorkerError as error:
        return Submission(batch, f"The job failed. {error}", error.run)
    except RuntimeError as error:
        return Submission(batch, f"The job was not run: {error}.")
    note = f"Slurm ran the job. The course's own worker ran {path.name}, so its records came back:"
    return Submission(batch, note, run)
