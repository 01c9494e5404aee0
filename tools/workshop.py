"""What an instructor wants to know before the day.

    python tools/workshop.py plan                 write the timetables into WORKSHOP.md
    python tools/workshop.py check [NN_slug ...]  eight people on this machine at once
    python tools/workshop.py needs [NN_slug ...]  what each lesson takes, into WORKSHOP.md

`check` goes through lessons 00 to 03 if none is named, and exits with 1 if anything fails.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import signal
import statistics
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import psutil

import workshop_plan
import workshop_room
from ddp_lessons import course
from ddp_lessons.launcher import cores
from workshop_room import Lesson, Report

ROOT = Path(__file__).resolve().parent.parent
PAGE = "WORKSHOP.md"
MIB = 2**20
PLANS = {"one day": 1, "two days": 2}


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description="What an instructor wants to know before the day.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("plan", help="write the timetables into WORKSHOP.md")
    check = commands.add_parser("check", help="several people on this machine at once")
    check.add_argument("--people", type=at_least_one, default=8, help="how many (default 8)")
    needs = commands.add_parser("needs", help="measure each lesson alone, write into WORKSHOP.md")
    for command in (check, needs):
        command.add_argument("lessons", nargs="*", metavar="NN_slug", help="which lessons")
    options = parser.parse_args(arguments)
    page = root / PAGE
    if options.command == "plan":
        page.write_text(planned(page.read_text(encoding="utf-8"), root), encoding="utf-8")
        return 0
    try:
        names = notebooks(options.lessons, 4 if options.command == "check" else None)
    except ValueError as error:
        parser.error(str(error))
    print(machine(), flush=True)
    if options.command == "check":
        report = workshop_room.hold(root, options.people, names)
        print(told(report))
        return 0 if report.ok else 1
    alone = {"every": 0.05, "closed": True}  # nobody else is to start anything
    reports = [workshop_room.hold(root, 1, [name], **alone) for name in names]
    print(faults := "\n".join(trouble(report) for report in reports if not report.ok))
    lines = needed([report.lessons[0] for report in reports])
    print(lines)
    if faults or options.lessons:
        return 1 if faults else 0
    text = between(page.read_text(encoding="utf-8"), "needs", f"{lines}\n\n{where()}")
    page.write_text(text, encoding="utf-8")
    return 0


def at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} people are no room. Give a number from 1 on")
    return int(text)


def notebooks(names: Sequence[str], first: int | None) -> list[str]:
    """The notebooks of these lessons, or of the first ones, as paths in the course."""
    slugs = [lesson.slug for lesson in course.LESSONS]
    wanted = [Path(name).stem for name in names] or slugs[:first]
    if unknown := [name for name in wanted if name not in slugs]:
        raise ValueError(f"no lesson {unknown[0]}. There are: {', '.join(slugs)}")
    return [f"notebooks/{name}.ipynb" for name in wanted]


# WORKSHOP.md


def planned(text: str, root: Path = ROOT) -> str:
    """The page with the timetables that the lessons' minutes give today."""
    parts = workshop_plan.parts(root)
    for name, days in PLANS.items():
        text = between(text, name, workshop_plan.table(workshop_plan.plan(parts, days)))
    return text


def between(text: str, name: str, new: str) -> str:
    """Put `new` between the two markers of this name. Raises ValueError if they are not there."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"{PAGE} lacks the markers of {name!r}")
    head, _, rest = text.partition(begin)
    return f"{head}{begin}\n{new.strip()}\n\n{end}{rest.partition(end)[2]}"


# What was measured


def machine() -> str:
    """This machine, and how busy it is before anything starts."""
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    memory = psutil.virtual_memory()
    free = f"{memory.total / 2**30:.0f} GiB of memory ({memory.available / 2**30:.0f} free)"
    return f"{cores()} cores, {free}{load}, torch {metadata.version('torch')}"


def where() -> str:
    version = metadata.version("torch").partition("+")[0]
    return (
        f"Measured on {platform.system()}, {cores()} cores, no GPU, torch {version}, Python "
        f"{'.'.join(platform.python_version_tuple()[:2])}, with `tools/workshop.py needs`."
    )


def told(report: Report) -> str:
    """The report on a room, for a terminal."""
    lines = [report.apart, "", f"{'':24} median s  slowest s  most MB a person"]
    for name in dict.fromkeys(lesson.name for lesson in report.lessons):
        these = [lesson for lesson in report.lessons if lesson.name == name]
        seconds = [lesson.seconds for lesson in these]
        lines.append(
            f"{Path(name).stem:24} {statistics.median(seconds):8.0f}  {max(seconds):9.0f}  "
            f"{max(lesson.peak for lesson in these) / MIB:16.0f}"
        )
    failed = sum(bool(lesson.faults) for lesson in report.lessons)
    lines += [
        "",
        f"memory: at most {max(report.peaks) / MIB:.0f} MB a person, {report.peak / MIB:.0f} MB of "
        f"all {len(report.peaks)} at one time (a page that processes share counts once)",
        f"{len(report.lessons)} notebooks gone through, {failed} failed",
    ]
    return "\n".join([*lines, trouble(report)]).rstrip()


def trouble(report: Report) -> str:
    """All that failed: the notebook, the cell, the person."""
    lines = [
        f"\nperson {lesson.user}, {lesson.name}, {fault}"
        for lesson in report.lessons
        for fault in lesson.faults
    ]
    return "\n".join([*lines, *report.faults])


def needed(lessons: Sequence[Lesson]) -> str:
    """A table of what each lesson takes, as Markdown."""
    lines = ["| lesson | memory, MB | CPU seconds | most ranks at once |", "|---|---|---|---|"]
    for lesson in lessons:
        number = re.sub(r"\D.*", "", Path(lesson.name).stem)
        row = (number, f"{lesson.peak / MIB:.0f}", f"{lesson.cpu:.0f}", str(lesson.ranks))
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the room is cleared then, too
    sys.exit(main())
