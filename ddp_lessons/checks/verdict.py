"""What a check says of an answer: plain frozen data and its text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ddp_lessons.run import headed

if TYPE_CHECKING:
    from ddp_lessons.run import Run

MARKS = {True: "ok  {}", False: "no  {}", None: "?   {} (not known yet)"}


@dataclass(frozen=True)
class Verdict:
    """The verdict on one answer.

    `requirements` are (sentence, held) in order; held is None for what could not be seen because
    the answer failed before. For an answer that failed: `case` says what it was given, `told` what
    happened, a line each, `mistake` is the name of the diagnosis, `usual` what that mistake usually
    is. `runs` are the launches that were made, the failing one last.
    """

    key: str
    requirements: tuple[tuple[str, bool | None], ...]
    case: str = ""
    told: tuple[str, ...] = ()
    mistake: str = ""
    usual: str = ""
    runs: tuple[Run, ...] = ()

    @property
    def passed(self) -> bool:
        return bool(self.requirements) and all(held for _, held in self.requirements)

    def __repr__(self) -> str:
        lines = [f"{self.key}: {'passed' if self.passed else 'not passed'}"]
        lines += ["  " + MARKS[held].format(sentence) for sentence, held in self.requirements]
        if self.case:
            lines.append(f"With {self.case}:")
        lines += [f"  {line}" for line in self.told]
        if self.usual:
            lines.append(self.usual)
        return "\n".join(lines)


class CheckError(AssertionError):
    """An answer did not pass. `str(error)` is the verdict, `error.verdict` the same as data."""

    def __init__(self, verdict: Verdict):
        super().__init__(repr(verdict))
        self.verdict = verdict

    @property
    def _render_traceback_(self) -> partial[Sequence[str]]:
        # IPython asks for this: the frames of the check would only hide the verdict.
        return partial(headed, "CheckError", str(self), ())
