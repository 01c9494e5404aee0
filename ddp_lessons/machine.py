"""What this machine has, a real all-reduce on it, and what follows from both, in plain words."""

from __future__ import annotations

import os
import platform
import shutil
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from ddp_lessons import placement
from ddp_lessons.course import LESSONS
from ddp_lessons.launcher import cores, launch
from ddp_lessons.run import WorkerError

TRIAL = "00_start_here/add.py"
LIMIT = 30  # seconds for the trial: a room of people may begin at once
GIB = 2**30
PACKAGES = ("jupyterlab", "ipywidgets", "ipykernel", "matplotlib", "nbval")


class Fact(NamedTuple):
    name: str
    value: str


@dataclass(frozen=True)
class Machine:
    """What check_machine() found. `lessons` pairs each lesson with whether it runs on NCCL here."""

    works: bool
    verdict: str
    facts: tuple[Fact, ...]
    advice: tuple[str, ...]
    lessons: tuple[tuple[str, bool], ...]

    def __repr__(self) -> str:
        return self.verdict

    def report(self) -> str:
        """All of it as text, for a terminal."""
        width = max(len(fact.name) for fact in self.facts)
        lines = [f"{fact.name:{width}}  {fact.value}" for fact in self.facts]
        lines += ["", self.verdict, *(f"- {line}" for line in self.advice), ""]
        lines += [f"{title}: {'NCCL' if nccl else 'gloo'}" for title, nccl in self.lessons]
        return "\n".join(lines)


def check_machine() -> Machine:
    """Look at this machine and try two real ranks on it, with a limit of 30 s.

    The text form says only whether the lessons will run; the rich form lists what was found.
    """
    gpus, nccl = placement.gpu_count(), placement.nccl_built()
    works, verdict = trial()
    return Machine(
        works,
        verdict,
        tuple(facts(gpus, nccl)),
        tuple(advice(gpus, nccl, cores(), memory(), shared_memory())),
        tuple(
            (f"{lesson.slug[:2]} {lesson.title}", nccl and gpus >= lesson.ranks)
            for lesson in LESSONS
        ),
    )


def trial() -> tuple[bool, str]:
    """Let two ranks add 1 and 2; whether that worked, and the sentence that says so."""
    try:
        launch(TRIAL, 1)  # the server starts in a time of its own
        run = launch(TRIAL, 2, timeout=LIMIT)
    except (WorkerError, RuntimeError, OSError) as error:
        return False, f"Two ranks could not add their numbers here. {error}"
    sums = run.values("sum")
    if sums != [3, 3]:
        return False, f"Two ranks added 1 and 2 and got {sums}. Something is wrong with torch here."
    return True, "Two real processes added 1 and 2 and both got 3. Every lesson runs here."


def facts(gpus: int, nccl: bool) -> list[Fact]:
    """What there is, each with its size or version."""
    import torch
    import torch.distributed as dist

    built = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU only"
    shm = shared_memory()
    found = [
        Fact("Python", platform.python_version()),
        Fact("torch", f"{torch.__version__} ({built})"),
        Fact("CPU cores", str(cores())),
        Fact("memory", f"{memory() / GIB:.0f} GiB" if memory() else "unknown"),
        Fact("GPUs", str(gpus)),
        Fact("NCCL", ".".join(map(str, torch.cuda.nccl.version())) if nccl else "not built in"),
        Fact("gloo", "yes" if dist.is_gloo_available() else "no"),
        Fact("mpi", "yes" if dist.is_mpi_available() else "no"),
        Fact("/dev/shm", f"{shm / GIB:.1f} GiB" if shm is not None else "none on this system"),
    ]
    return found + [Fact(name, version(name)) for name in PACKAGES]


def advice(
    gpus: int, nccl: bool, core_count: int, bytes_of_memory: int | None, shm: int | None
) -> list[str]:
    """One plain sentence for each thing worth knowing before the first lesson."""
    lines = []
    if gpus == 0:
        lines.append("No GPU: the ranks use gloo on the CPU. The scripts are the same on both.")
    elif not nccl:
        lines.append(f"{gpus} GPU(s), but this torch has no NCCL: the ranks use gloo on the CPU.")
    elif gpus == 1:
        lines.append(
            "One GPU: NCCL wants one for each rank, so runs of two ranks and more use the CPU."
        )
    else:
        lines.append(f"{gpus} GPUs: runs of up to {gpus} ranks use NCCL, larger ones the CPU.")
    if core_count < 2:
        lines.append("One CPU core: the ranks take turns. All results are the same, only slower.")
    if bytes_of_memory is not None and bytes_of_memory < 4 * GIB:
        lines.append("Less than 4 GiB of memory: close other notebooks before the larger runs.")
    if shm is not None and shm < GIB:
        lines.append(
            f"/dev/shm has {shm / GIB:.2f} GiB. NCCL and DataLoader workers share memory there and "
            "die when it is full. In Docker, start the container with --shm-size=1g."
        )
    return lines


def memory() -> int | None:
    """Bytes of memory that this process may use, or None where the system does not tell."""
    limits = []
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    cgroup = Path("/sys/fs/cgroup/memory.max")  # a container's limit
    if cgroup.exists() and (text := cgroup.read_text().strip()).isdigit():
        limits.append(int(text))
    return min(limits, default=None)


def shared_memory() -> int | None:
    """Bytes of /dev/shm, or None where there is none."""
    path = Path("/dev/shm")
    return shutil.disk_usage(path).total if path.is_dir() else None


def version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
