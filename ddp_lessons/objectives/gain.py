"""What readers gained in each lesson, from the answer sheets that an instructor has collected.

Only sheets with both answers count, and each sheet once. The normalised gain is the share of what
could be gained that was: (after - before) / (all - before), of the means of the group (R. R. Hake,
American Journal of Physics 66, 64-74, 1998, doi:10.1119/1.18809).
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ddp_lessons import objectives
from ddp_lessons.objectives import UNKNOWN, Question, sheets
from ddp_lessons.objectives.sheets import Sheet
from ddp_lessons.text import printable, short


@dataclass(frozen=True)
class Collected:
    """The sheets, each once, and a sentence for each file that is none or adds nothing."""

    sheets: tuple[Sheet, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class QuestionGain:
    """The share of people, 0 to 1, who were right; `believed` is the wrong letter that most chose
    afterwards, "" for none, and `believers` is how many did."""

    objective: str
    before: float
    after: float
    believed: str
    believers: int


@dataclass(frozen=True)
class LessonGain:
    """`people` answered before and after; the means count right answers of theirs. `normalised` is
    None where everything was right before."""

    lesson: str
    people: int
    only_before: int
    only_after: int
    before: float
    after: float
    normalised: float | None
    questions: tuple[QuestionGain, ...]

    @property
    def gain(self) -> float:
        return self.after - self.before


def collect(paths: Iterable[str | Path]) -> Collected:
    """Every answer sheet among these files and in these folders, and in all folders below them."""
    found: dict[tuple[str, str], tuple[Sheet, Path]] = {}
    left_out = []
    for path, wrong in _files(paths):
        try:
            if wrong:
                raise ValueError(wrong)
            sheet = sheets.read(path)
            if sheet.version != objectives.find(sheet.lesson).version:
                raise ValueError("its questions are those of another version of the course")
        except (ValueError, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            left_out.append(f"{printable(str(path))}: {short(why, 120)}")
            continue
        key = (sheet.lesson, sheet.number)
        if key in found:
            other, place = found[key]
            if _said(sheet) > _said(other):
                found[key] = (sheet, path)
                path, place = place, path
            same = f"the sheet is also {printable(str(place))}, counted once"
            if _said(sheet) == _said(other) == 2 and sheet != other:  # nothing changes after that
                same = (
                    f"has the number of {printable(str(place))} and other letters: a copied sheet. "
                    "Only that one counts"
                )
            left_out.append(f"{printable(str(path))}: {same}")
        else:
            found[key] = (sheet, path)
    return Collected(tuple(sheet for sheet, _ in found.values()), tuple(left_out))


def _files(paths: Iterable[str | Path]) -> Iterator[tuple[Path, str]]:
    """Each file to look at, once, and what is wrong where there is none."""
    seen: set[str] = set()
    for given in map(Path, paths):
        inside = sorted(_inside(given)) if _is_folder(given) else [(given, "")]
        if not inside:
            yield given, "no answer sheet is in this folder"
        for path, wrong in inside:
            if (whole := os.path.realpath(path)) not in seen:
                seen.add(whole)
                yield path, wrong


def _is_folder(path: Path) -> bool:
    with contextlib.suppress(OSError):  # of a file that cannot be reached, reading it says why
        return path.is_dir()
    return False


def _inside(given: Path) -> Iterator[tuple[Path, str]]:
    """The sheets in a folder and in all below it, and the folders that are not looked into: who is
    in there would be missing from the sums without a word."""
    closed: list[OSError] = []
    for folder, folders, files in os.walk(given, onerror=closed.append):
        # JupyterLab keeps copies in a folder of this name.
        folders[:] = [name for name in folders if name != ".ipynb_checkpoints"]
        links = [path for name in folders if (path := Path(folder, name)).is_symlink()]
        yield from ((link, "a link to a folder, which is not followed") for link in links)
        yield from ((Path(folder, name), "") for name in files if name.endswith(".json"))
    yield from ((Path(error.filename), error.strerror) for error in closed)


def _said(sheet: Sheet) -> int:
    return bool(sheet.before) + bool(sheet.after)


def gains(collected: Sequence[Sheet]) -> list[LessonGain]:
    """What was gained, by lesson, in course order."""
    slugs = sorted({sheet.lesson for sheet in collected})
    return [_gain(slug, [sheet for sheet in collected if sheet.lesson == slug]) for slug in slugs]


def _gain(lesson: str, collected: Sequence[Sheet]) -> LessonGain:
    topic = objectives.find(lesson)
    both = [sheet for sheet in collected if sheet.before and sheet.after]
    before = _mean([topic.right(sheet.before) for sheet in both])
    after = _mean([topic.right(sheet.after) for sheet in both])
    room = len(topic.questions) - before
    return LessonGain(
        lesson,
        len(both),
        sum(bool(sheet.before) and not sheet.after for sheet in collected),
        sum(bool(sheet.after) and not sheet.before for sheet in collected),
        before,
        after,
        (after - before) / room if both and room else None,
        tuple(_of_question(one, both, place) for place, one in enumerate(topic.questions)),
    )


def _of_question(one: Question, both: Sequence[Sheet], place: int) -> QuestionGain:
    before = [sheet.before[place] for sheet in both]
    after = [sheet.after[place] for sheet in both]
    wrong = Counter(sorted(x for x in after if x not in (one.right, UNKNOWN)))
    believed, believers = wrong.most_common(1)[0] if wrong else ("", 0)
    shares = (_mean([x == one.right for x in letters]) for letters in (before, after))
    return QuestionGain(one.objective, *shares, believed, believers)


def _mean(values: Sequence[int]) -> float:
    return sum(values) / len(values) if values else 0.0


def report(collected: Collected) -> str:
    """All of it as text: the lessons, then each lesson's questions, then what was left out."""
    found = gains(collected.sheets)
    parts = [_table(found), *(_questions(one) for one in found if one.people)]
    if collected.left_out:
        parts.append("\n".join(["Left out:", *(f"  {line}" for line in collected.left_out)]))
    return "\n\n".join(parts)


def _table(found: Sequence[LessonGain]) -> str:
    if not found:
        return "No answer sheet was found: collect the folder answers/questions of each reader."
    rows = [["lesson", "people", "before", "after", "gain", "normalised"]]
    for one in found:
        means = (one.before, one.after, one.gain)
        numbers = [f"{x:.2f}" for x in means] if one.people else ["-"] * len(means)
        part = "-" if one.normalised is None else f"{one.normalised:.2f}"
        rows.append([one.lesson, str(one.people), *numbers, part])
    notes = [
        "People who answered before and after a lesson; means of right answers; the share of what "
        "could be gained (Hake 1998).",
        *(
            f"{one.lesson}: {one.only_before} answered only before, {one.only_after} only after."
            for one in found
            if one.only_before or one.only_after
        ),
    ]
    return "\n".join([*_aligned(rows), *notes])


def _questions(one: LessonGain) -> str:
    """Each question of a lesson: the shares, and what people still believe who are wrong."""
    topic = objectives.find(one.lesson)
    rows = [["", "before", "after", "objective"]]
    rows += [
        [str(number), f"{had.before:.0%}", f"{had.after:.0%}", had.objective]
        for number, had in enumerate(one.questions, 1)
    ]
    lines = [one.lesson]
    for row, had, asked in zip(
        _aligned(rows, last_left=True),
        [None, *one.questions],
        [None, *topic.questions],
        strict=True,
    ):
        lines.append(row)
        if had and asked and had.believers:
            said = f"{had.believed}  {asked.choice(had.believed)}"
            lines.append(f"   {had.believers} of {one.people} still say: {said}")
    return "\n".join(lines)


def _aligned(rows: Sequence[Sequence[str]], last_left: bool = False) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    left = {0, len(widths) - 1} if last_left else {0}
    return [
        "  ".join(
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def as_json(collected: Collected) -> str:
    """The same for a program: "lessons" and "left_out"."""
    found = [asdict(one) | {"gain": one.gain} for one in gains(collected.sheets)]
    return json.dumps({"lessons": found, "left_out": collected.left_out}, indent=1)
