"""A reader's answer sheet: one small JSON file a lesson, beside the notebook.

It holds letters and no name. Its number tells an instructor when one sheet was collected twice.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ddp_lessons import objectives
from ddp_lessons.checks import answers

FOLDER = "questions"  # in the folder of the answers
MOST = 10_000  # bytes of a sheet; a real one has under 300


@dataclass(frozen=True)
class Sheet:
    """The letters that count for one lesson, "" where there are none; `version` is the Topic's."""

    lesson: str
    version: str
    number: str
    before: str = ""
    after: str = ""


def new(topic: objectives.Topic) -> Sheet:
    return Sheet(topic.lesson, topic.version, secrets.token_hex(8))


def name(lesson: str) -> str:
    return f"{FOLDER}/{lesson}.json"


def shown(lesson: str) -> str:
    """Where a sheet is, as seen from the notebook."""
    return f"{answers.FOLDER}/{name(lesson)}"


def keep(sheet: Sheet) -> bool:
    """Write a sheet; False if it went to a temporary folder. Raises OSError if it went nowhere."""
    text = json.dumps(asdict(sheet), indent=1) + "\n"
    return not answers.put(name(sheet.lesson), text).is_absolute()


def is_temporary(lesson: str) -> bool:
    """Whether this process keeps the sheet among its temporary files."""
    place = answers.last(name(lesson))
    return place is not None and place != Path(answers.FOLDER, name(lesson)).resolve()


def kept(topic: objectives.Topic) -> Sheet | None:
    """The sheet in this folder, if there is one. Raises ValueError for a file that is none, and
    OSError for one that cannot be read."""
    place = answers.last(name(topic.lesson))
    if place is None:
        return None
    sheet = read(place)
    if sheet.lesson != topic.lesson:
        raise ValueError(f"the answers in it are to {sheet.lesson}")
    return sheet


def read(path: Path) -> Sheet:
    """The sheet in a file. Raises ValueError, saying why in a few words, if it holds none."""
    if path.exists() and not path.is_file():  # a pipe would keep its reader waiting for ever
        raise ValueError("it is no file")
    with open(path, "rb") as file:
        data = file.read(MOST + 1)
    if len(data) > MOST:
        raise ValueError("it is too large for an answer sheet")
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError("it is no JSON") from None
    return _sheet(found)


def _sheet(found: Any) -> Sheet:
    wanted = set(Sheet.__annotations__)
    if not isinstance(found, dict) or not wanted <= set(found):
        raise ValueError("it is no answer sheet of this course")
    sheet = Sheet(**{field: found[field] for field in wanted})
    if not all(isinstance(value, str) for value in asdict(sheet).values()):
        raise ValueError("it is no answer sheet of this course")
    topic = objectives.find(sheet.lesson)
    if sheet.version == topic.version:  # of other questions nobody here knows the letters
        for letters in (sheet.before, sheet.after):
            if letters and topic.letters(letters) != letters:
                raise ValueError(f"{letters!r} are no letters that the course has kept")
    return sheet


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Let one process at a time change a sheet of this folder: two notebooks may be open at once.
    Where the system or the disk knows no such lock, the block runs all the same."""
    fd = None
    with contextlib.suppress(ImportError, OSError):
        import fcntl

        folder = Path(answers.FOLDER, FOLDER)
        folder.mkdir(parents=True, exist_ok=True)
        fd = os.open(folder, os.O_RDONLY)
        fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if fd is not None:
            os.close(fd)
