"""The timetables of a workshop, computed from what the lessons and exercises say of themselves.

Pure functions from minutes to tables. A day begins and ends as DAY says; no stretch of work is
longer than LONGEST; a lesson comes after those that it needs; no lesson is split.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ddp_lessons import course

ROOT = Path(__file__).resolve().parent.parent
DAY = 9 * 60, 17 * 60  # in minutes after midnight
LUNCH, LUNCH_FROM, LUNCH_TO = 60, 11 * 60 + 45, 13 * 60 + 15
BREAK, LONGEST, SHORTEST = 15, 90, 40
CHECKPOINT = 10  # minutes, in those that its lesson's page states
TALK = 5  # minutes that a room takes for a lesson's vote, on top of the reader's own
OPENING, CLOSING, STEP = 15, 15, 5


@dataclass(frozen=True)
class Item:
    """Something to do in one go; `lesson` is its NN. `kind` is opening, lesson, exercise,
    checkpoint, closing, break or lunch; `own` are the minutes that its page states for it."""

    kind: str
    lesson: str
    title: str
    minutes: int
    link: str = ""
    own: int = 0


@dataclass(frozen=True)
class Part:
    """A lesson with all that belongs to it, and the numbers of the lessons that it needs."""

    lesson: Item
    needs: tuple[str, ...]
    exercises: tuple[Item, ...]
    checkpoint: Item | None


@dataclass(frozen=True)
class Plan:
    """Days of timed items, breaks included, as (start, item), and the exercises and lessons that
    found no place."""

    days: tuple[tuple[tuple[int, Item], ...], ...]
    left_out: tuple[Item, ...]

    @property
    def items(self) -> list[Item]:
        return [item for day in self.days for _, item in day]


def rounded(minutes: int) -> int:
    return -(-minutes // STEP) * STEP


def parts(root: Path = ROOT) -> list[Part]:
    """Every lesson of the course, in order, read from the sources."""
    return [part(lesson, root) for lesson in course.LESSONS]


def part(lesson: course.Lesson, root: Path = ROOT) -> Part:
    number, slug = lesson.slug[:2], lesson.slug
    text = (root / "notebooks/source" / f"{slug}.py").read_text(encoding="utf-8")
    needs = re.search(r" · needs ([^·\n]+)", text)
    assert needs, f"{slug} does not say what it needs"
    link = f"notebooks/{slug}.ipynb"
    check = re.search(r"^# ## (Checkpoint: .+)", text, re.M)
    alone = lesson.minutes - (CHECKPOINT if check else 0)
    item = Item("lesson", number, lesson.title, rounded(alone) + TALK, link)
    return Part(
        replace(item, own=alone),
        tuple(re.findall(r"\d\d", needs[1])),
        tuple(exercises(slug, root)),
        Item("checkpoint", number, check[1], CHECKPOINT, link, CHECKPOINT) if check else None,
    )


def exercises(slug: str, root: Path = ROOT) -> Iterator[Item]:
    """The exercises of a lesson: each is headed by its minutes, under a heading of its own."""
    source = root / "solutions/source" / f"{slug}.py"
    if not source.exists():
        return
    pattern = r"^# #{1,2} (?:Exercise: )?(.+)\n#\n# (\d+) min · "
    for title, minutes in re.findall(pattern, source.read_text(encoding="utf-8"), re.M):
        shown = title[0].upper() + title[1:]
        link, own = f"exercises/{slug}.ipynb", int(minutes)
        yield Item("exercise", slug[:2], shown, rounded(own), link, own)


def plan(course_parts: Sequence[Part], days: int) -> Plan:
    """As many lessons, from the first on, as fit with the shortest exercise of each; then as many
    of the other exercises as still fit, in course order."""
    for count in range(len(course_parts), 0, -1):
        taken = course_parts[:count]
        chosen = [min(p.exercises, key=lambda x: x.minutes) for p in taken if p.exercises]
        found = timetable(taken, chosen, days)
        if not found:
            continue
        for more in (x for p in taken for x in p.exercises if x not in chosen):
            better = timetable(taken, [*chosen, more], days)
            if better:
                found, chosen = better, [*chosen, more]
        rest = [x for p in taken for x in p.exercises if x not in chosen]
        rest += [x for p in course_parts[count:] for x in (p.lesson, *p.exercises)]
        return Plan(found, tuple(rest))
    raise ValueError("not even one lesson fits")


def timetable(taken: Sequence[Part], chosen: Sequence[Item], days: int) -> tuple | None:
    """The most even days that hold all of this, a lesson and what belongs to it on one day; None
    if there are none."""
    groups = [
        [
            p.lesson,
            *(x for x in p.exercises if x in chosen),
            *([p.checkpoint] if p.checkpoint else []),
        ]
        for p in taken
    ]
    best, best_cost = None, None
    for cuts in itertools.combinations(range(1, len(groups)), days - 1):
        edges = [0, *cuts, len(groups)]
        arranged = []
        for number, (low, high) in enumerate(itertools.pairwise(edges)):
            work = [item for group in groups[low:high] for item in group]
            first = "Welcome: the first lesson opens for everybody" if number == 0 else "Questions"
            work.insert(0, Item("opening", "", first, OPENING))
            last = "What to take home" if number == days - 1 else "What was unclear today"
            work.append(Item("closing", "", last, CLOSING))
            arranged.append(arrange(work))
        if all(arranged):
            cost = (max(day[-1][0] for day in arranged), sum(unevenness(day) for day in arranged))
            if best_cost is None or cost < best_cost:
                best, best_cost = tuple(arranged), cost
    return best


def arrange(work: Sequence[Item]) -> tuple[tuple[int, Item], ...] | None:
    """One day's items with their times and with breaks where they make the most even stretches, as
    few as possible; None if the day is too short."""
    room = DAY[1] - DAY[0] - LUNCH - sum(item.minutes for item in work)
    for breaks in range(max(room, -1) // BREAK + 1):
        found = [
            day
            for pauses in itertools.combinations(range(1, len(work)), breaks + 1)
            if sane(blocks(work, pauses))
            for lunch in range(breaks + 1)
            if (day := timed(work, pauses, lunch))
        ]
        if found:
            return min(found, key=unevenness)
    return None


def blocks(work: Sequence[Item], pauses: Sequence[int]) -> list[int]:
    """The minutes of each stretch of work between two pauses."""
    edges = [0, *pauses, len(work)]
    return [sum(x.minutes for x in work[a:b]) for a, b in itertools.pairwise(edges)]


def sane(minutes: Sequence[int]) -> bool:
    return all(SHORTEST <= one <= LONGEST for one in minutes)


def timed(work: Sequence[Item], pauses: Sequence[int], lunch: int) -> tuple | None:
    """The day with pause number `lunch` as its lunch, or None if that is no time for lunch."""
    day, now = [], DAY[0]
    for number, item in enumerate(work):
        if number in pauses:
            at_lunch = pauses.index(number) == lunch
            if at_lunch and not LUNCH_FROM <= now <= LUNCH_TO:
                return None
            pause = Item("lunch", "", "Lunch", LUNCH) if at_lunch else PAUSE
            day.append((now, pause))
            now += pause.minutes
        day.append((now, item))
        now += item.minutes
    return tuple(day)


PAUSE = Item("break", "", "Break", BREAK)


def stretches(day: Sequence[tuple[int, Item]]) -> list[int]:
    """The minutes of each stretch of work of a timed day."""
    found = [0]
    for _, item in day:
        if item.kind in ("break", "lunch"):
            found.append(0)
        else:
            found[-1] += item.minutes
    return found


def unevenness(day: Sequence[tuple[int, Item]]) -> int:
    """Small if the stretches of work are alike, and if no break parts a lesson from what follows
    from it."""
    parted = sum(
        1
        for (_, a), (_, pause), (_, b) in zip(day, day[1:], day[2:], strict=False)
        if pause.kind in ("break", "lunch") and a.lesson and a.lesson == b.lesson
    )
    return sum(one * one for one in stretches(day)) + 500 * parted


def table(found: Plan) -> str:
    """The plan as Markdown: a table for each day, then what is left out."""
    lines = []
    for number, day in enumerate(found.days, 1):
        if len(found.days) > 1:
            lines += [f"**Day {number}**", ""]
        lines += ["| time | min | |", "|---|---|---|"]
        lines += [f"| {clock(start)} | {item.minutes} | {told(item)} |" for start, item in day]
        start, item = day[-1]
        lines += [f"| {clock(start + item.minutes)} | | End |", ""]
    return "\n".join([*lines, left_out(found), ""])


def left_out(found: Plan) -> str:
    """What the plan has no place for: each lesson with its exercises, then single exercises."""
    lines = []
    lessons = [item for item in found.left_out if item.kind == "lesson"]
    stated = {lesson.slug[:2]: lesson.minutes for lesson in course.LESSONS}
    for lesson in lessons:
        its = [x for x in found.left_out if x.kind == "exercise" and x.lesson == lesson.lesson]
        also = f", exercises {sum(x.own for x in its)}" if its else ""
        lines.append(f"{told(lesson)} ({stated[lesson.lesson]} min{also})")
    apart = {lesson.lesson for lesson in lessons}
    lines += [
        f"{told(item)} ({item.own} min)"
        for item in found.left_out
        if item.kind == "exercise" and item.lesson not in apart
    ]
    return (
        "\n".join(["Left out:", "", *(f"- {x}" for x in lines)])
        if lines
        else "Nothing is left out."
    )


def clock(minute: int) -> str:
    return f"{minute // 60}:{minute % 60:02}"


def told(item: Item) -> str:
    if item.kind in ("break", "lunch"):
        return f"*{item.title}*"
    if not item.link:
        return item.title
    name = {"lesson": f"{item.lesson} ", "exercise": "Exercise: ", "checkpoint": ""}[item.kind]
    return f"{name}[{item.title}]({item.link})"
