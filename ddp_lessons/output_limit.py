"""Stop a run whose ranks write without end, before it fills the disk."""

from __future__ import annotations

from pathlib import Path

from ddp_lessons.engines import Workers
from ddp_lessons.stall import names

MOST = 256  # MB of a rank's stdout, stderr and records together, in all its attempts
FILES = ("stdout", "stderr", "records.jsonl")


class OutputLimit:
    """A look at the sizes of the ranks' files. `over` has the ranks that have gone too far."""

    def __init__(self, folder: Path, workers: Workers):
        self._folder, self._workers = folder, workers
        self.over: list[int] = []

    def look(self) -> float | None:
        """No second more, once a rank that still runs is over the limit."""
        running = sorted(self._workers.running())
        self.over = [rank for rank in running if self._written(rank) > MOST * 1_000_000]
        return 0.0 if self.over else None

    def _written(self, rank: int) -> int:
        files = (
            here / name
            for here in self._folder.glob(f"attempt_*/rank_{rank}")
            for name in FILES
            if (here / name).exists()
        )
        return sum(file.stat().st_size for file in files)

    def report(self, script: str) -> str:
        many = len(self.over) > 1
        each, it = ("each ", "they were") if many else ("", "it was")
        return (
            f"{script}: {names(self.over)} {each}wrote more than {MOST} MB of output, so {it} "
            "stopped. Print less: a line every so many steps, from one rank."
        )
