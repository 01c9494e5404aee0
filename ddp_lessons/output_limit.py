"""Stop a run whose ranks write without end, before it fills the disk."""

from __future__ import annotations

from pathlib import Path

from ddp_lessons.bootstrap import STARTER
from ddp_lessons.engines import Workers
from ddp_lessons.stall import names

MOST = 256  # MB of a rank's stdout, stderr and records together, in all its attempts
FILES = ("stdout", "stderr", "records.jsonl")


class OutputLimit:
    """A look at the sizes of the ranks' files. `over` has the ranks that have gone too far, and
    `passed` is true if one has, or a script's own process that starts its ranks itself."""

    def __init__(self, folder: Path, workers: Workers):
        self._folder, self._workers = folder, workers
        self.over: list[int] = []
        self.passed = False

    def look(self) -> float | None:
        """No second more, once a rank that still runs is over the limit."""
        running = sorted(self._workers.running())
        self.over = [rank for rank in running if self._written(f"attempt_*/rank_{rank}")]
        self.passed = bool(self.over) or self._written(STARTER)
        return 0.0 if self.passed else None

    def _written(self, folders: str) -> bool:
        """Whether there is more than the limit in these folders of the run."""
        files = (here / name for here in self._folder.glob(folders) for name in FILES)
        return sum(file.stat().st_size for file in files if file.exists()) > MOST * 1_000_000

    def report(self, script: str) -> str:
        many = len(self.over) > 1
        who = names(self.over) if self.over else "the script's own process"
        each, it = ("each ", "they were") if many else ("", "it was")
        return (
            f"{script}: {who} {each}wrote more than {MOST} MB of output, so {it} "
            "stopped. Print less: a line every so many steps, from one rank."
        )
