"""What each lesson is for: three objectives, each with a question that is asked before and after.

A file a lesson, NN_slug.toml. Every question has one right choice; the others are what people
believe who have not met the idea yet.
"""

from __future__ import annotations

import difflib
import hashlib
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
UNKNOWN = "?"  # the answer of who does not know
LETTERS = "abcd"


@dataclass(frozen=True)
class Question:
    """One question. `right` is a letter; `because` is the sentence that is shown with it."""

    objective: str
    ask: str
    choices: tuple[str, ...]
    right: str
    because: str

    def choice(self, letter: str) -> str:
        return self.choices[LETTERS.index(letter)]

    @property
    def letters(self) -> str:
        return LETTERS[: len(self.choices)]


@dataclass(frozen=True)
class Topic:
    """The questions of one lesson. `version` changes when a letter comes to mean something else."""

    lesson: str
    questions: tuple[Question, ...]

    @property
    def version(self) -> str:
        said = repr([(one.ask, one.choices, one.right) for one in self.questions])
        return hashlib.sha256(said.encode()).hexdigest()[:8]

    def right(self, letters: str) -> int:
        """How many of these letters are right."""
        return sum(one.right == x for one, x in zip(self.questions, letters, strict=True))

    def letters(self, given: Any) -> str:
        """Letters as a reader gives them, "bca", "B, c, -" or a list, as "bca" and "bc?".

        Raises ValueError, in one sentence, unless there is one possible letter for each question.
        """
        wanted = len(self.questions)
        if isinstance(given, str):
            found = [x for x in given.lower() if not x.isspace() and x not in ",.;"]
        elif isinstance(given, list | tuple) and all(isinstance(x, str | None) for x in given):
            found = [(x or UNKNOWN).strip().lower() for x in given]
        else:
            what = f"{type(given).__name__}"
            raise ValueError(f'the answers are {wanted} letters, such as "b?a", and no {what}')
        found = [UNKNOWN if x == "-" else x for x in found]
        if len(found) != wanted:
            raise ValueError(
                f"{wanted} letters are needed, one for each question, and {given!r} has "
                f'{len(found)}: put "?" where you do not know'
            )
        for number, (one, x) in enumerate(zip(self.questions, found, strict=True), 1):
            if x != UNKNOWN and (len(x) != 1 or x not in one.letters):
                raise ValueError(
                    f"{x!r} is no choice of question {number}, which has a to {one.letters[-1]}: "
                    'put "?" where you do not know'
                )
        return "".join(found)


def lessons() -> list[str]:
    """The lessons that have questions, in course order."""
    return sorted(path.stem for path in HERE.glob("[0-9]*.toml"))


def find(lesson: Any) -> Topic:
    """The questions of a lesson, NN_slug. Raises ValueError, naming the nearest, if it has none."""
    known = lessons()
    if lesson not in known:
        near = _nearest(str(lesson), known)
        hint = f" Did you mean {near}?" if near else ""
        raise ValueError(f"no lesson {lesson!r} has questions.{hint}")
    return _read(lesson)


def _nearest(name: str, known: Iterable[str]) -> str:
    plain = name.strip().lower()
    begun = [one for one in known if one.startswith(plain)] if plain else []
    near = begun if len(begun) == 1 else difflib.get_close_matches(plain, known, n=1, cutoff=0.4)
    return near[0] if near else ""


@cache
def _read(lesson: str) -> Topic:
    entries = tomllib.loads((HERE / f"{lesson}.toml").read_text(encoding="utf-8"))["question"]
    return Topic(
        lesson, tuple(Question(**one | {"choices": tuple(one["choices"])}) for one in entries)
    )
