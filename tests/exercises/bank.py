"""The bank of answers: tests/answers/NN_slug/name/right_*.py and wrong_*.py.

A wrong answer's first line says which diagnosis it must get: `# diagnosis: one_buffer`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

BANK = Path(__file__).resolve().parents[1] / "answers"
DIAGNOSIS = "# diagnosis: "


@dataclass(frozen=True)
class Answer:
    """One answer; `diagnosis` is the mistake that it must be told, "" for a right one."""

    key: str
    path: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(BANK).with_suffix("").as_posix()

    @property
    def right(self) -> bool:
        return self.path.name.startswith("right_")

    @property
    def diagnosis(self) -> str:
        first = self.path.read_text(encoding="utf-8").partition("\n")[0]
        return first.removeprefix(DIAGNOSIS) if first.startswith(DIAGNOSIS) else ""


def answers(key: str = "") -> list[Answer]:
    """Every answer in the bank, or those to one exercise."""
    found = sorted(BANK.glob(f"{key or '*/*'}/*.py"))
    return [Answer(path.parent.relative_to(BANK).as_posix(), path) for path in found]
