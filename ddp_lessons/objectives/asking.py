"""questions(): a lesson's three questions, before it and after it, and what was gained."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ddp_lessons import objectives
from ddp_lessons.objectives import UNKNOWN, Question, Topic, sheets
from ddp_lessons.objectives.sheets import Sheet
from ddp_lessons.run import say

BEFORE, AFTER = "before", "after"
_NOT_GIVEN: Any = object()


@dataclass(frozen=True)
class Asked:
    """What questions() shows. `letters` are this call's, "" for none; `counted` are the sheet's.

    `head`, `entries` and `notes` are all that a form of it says, the text as the HTML.
    """

    topic: Topic
    when: str
    letters: str = ""
    counted: Sheet | None = None
    notes: tuple[str, ...] = ()

    @property
    def head(self) -> str:
        lesson, count = self.topic.lesson, len(self.topic.questions)
        if not self.letters:
            return f"{lesson}, {self.when} the lesson: {count} questions"
        if self.when == BEFORE:
            return f"{lesson}, before the lesson: your answers"
        said = f"after {self.score(self.letters)}"
        before = self.counted.before if self.counted else ""
        if before:
            said = f"before {self.score(before)}, {said}"
        return f"{lesson}: {said}"

    def score(self, letters: str) -> str:
        return f"{self.topic.right(letters)} of {len(self.topic.questions)}"

    @property
    def entries(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """For each question its text, and the lines below it, each a mark and a sentence."""
        given = self.letters or [""] * len(self.topic.questions)
        return [
            (one.ask, list(self._below(one, letter)))
            for one, letter in zip(self.topic.questions, given, strict=True)
        ]

    def _below(self, one: Question, letter: str) -> list[tuple[str, str]]:
        if not letter:
            return list(zip(one.letters, one.choices, strict=True))
        said = "you do not know" if letter == UNKNOWN else one.choice(letter)
        if self.when == BEFORE:
            return [(f"your {letter}", said)]
        if letter == one.right:
            return [(f"your {letter}, right", said), ("because", one.because)]
        mine = f"your {letter}" if letter == UNKNOWN else f"your {letter}, wrong"
        return [(mine, said), (f"{one.right} is right", one.choice(one.right))] + [
            ("because", one.because)
        ]

    def __repr__(self) -> str:
        lines = [self.head]
        for number, (ask, below) in enumerate(self.entries, 1):
            lines.append(f"{number}. {ask}")
            width = max(len(mark) for mark, _ in below)
            lines += [f"   {mark:{width}}  {said}" for mark, said in below]
        return "\n".join([*lines, *self.notes])


def questions(lesson: str, *, before: Any = _NOT_GIVEN, after: Any = _NOT_GIVEN) -> Asked:
    """Ask a lesson's three questions, or take answers: questions("00_start_here", before="b?a").

    While the letters are None, the questions are shown and nothing is kept. `before` is kept and
    not judged. `after` is kept and judged; what was kept as `after` first is what counts, and from
    then on `before` cannot change. Letters are kept in answers/questions/ of the current folder.
    Raises ValueError for an unknown lesson, and for letters that answer no question.
    """
    try:
        topic = objectives.find(lesson)
        if before is not _NOT_GIVEN and after is not _NOT_GIVEN:
            raise ValueError("give before= or after=, not both: the lesson lies between them")
        when, given = (AFTER, after) if after is not _NOT_GIVEN else (BEFORE, before)
        letters = "" if given is _NOT_GIVEN or given is None else topic.letters(given)
    except ValueError as error:
        raise say(error) from None
    if not letters:
        return Asked(topic, when, notes=(how(when),))
    with sheets.alone():
        counted, notes = take(topic, when, letters)
    return Asked(topic, when, letters, counted, notes)


def how(when: str) -> str:
    end = " The end of the lesson asks again." if when == BEFORE else ""
    return (
        f'To answer, write one letter for each question, such as {when}="b?a", with ? where you do '
        f"not know, and run the cell.{end}"
    )


def take(topic: Topic, when: str, letters: str) -> tuple[Sheet | None, tuple[str, ...]]:
    """Keep these letters, if they count. The sheet as it is then, and sentences for the reader."""
    place = sheets.shown(topic.lesson)
    try:
        old = sheets.kept(topic)
    except (ValueError, OSError):
        return None, (
            f"Not kept: {place} holds something else than answers to this lesson. Remove that file "
            "and run the cell again.",
        )
    notes = []
    if old and old.version != topic.version:
        old = None
        notes.append("These questions have changed, so your earlier answers no longer count.")
    old = old or sheets.new(topic)
    sheet = replace(old, **{when: letters})
    if old.after and sheet != old:
        refused = (
            f"Not kept: your first answers after the lesson count, {_spaced(old.after)}"
            if when == AFTER
            else "Not kept: you have answered after the lesson and seen what is right. "
            + (f"What counts is {_spaced(old.before)}" if old.before else "There was no answer")
        )
        anew = "restart the kernel" if sheets.is_temporary(topic.lesson) else f"remove {place}"
        return old, (*notes, f"{refused}. To begin anew, {anew}.")
    try:
        beside = sheets.keep(sheet)
    except OSError as error:
        return old, (*notes, f"Not kept, here or in a temporary folder: {error.strerror}.")
    where = (
        f"Kept in {place}, beside this notebook."
        if beside
        else "This folder takes no file, so your answers are kept only until this kernel ends."
    )
    if when == BEFORE:
        where += " The end of the lesson asks again, and says what is right."
    elif not sheet.before:
        where += " There are no answers from before the lesson, so nobody can say what you gained."
    return sheet, (*notes, where)


def _spaced(letters: str) -> str:
    return " ".join(letters)
