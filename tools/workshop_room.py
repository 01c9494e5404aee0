"""Several people work through lessons on one machine at once: start them, look, tidy up, tell.

What they share is a read-only copy of the course and the environment. Everything else is a person's
own: notebooks, exercises, home, temporary folder, kernel. As root, each gets a user id of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from workshop_apart import OWN_UIDS, TOLD, as_user, cannot_start, free_uids, separation
from workshop_memory import descendants, size, together
from workshop_traces import MARK, changed, clear, digest, strays

HERE = Path(__file__).resolve().parent
SHARED = ("ddp_lessons", "notebooks", "exercises", "solutions")
OWN = ("notebooks", "exercises")  # what each person gets a copy of
GONE = 30.0  # seconds for what a kernel has started to be gone


@dataclass(frozen=True)
class Lesson:
    """One person's way through one notebook. `peak` is in bytes; `faults` are sentences."""

    user: int
    name: str
    seconds: float
    cpu: float
    ranks: int
    peak: int
    faults: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """What became of a room. `peaks` are each person's most bytes, `peak` the most of all at one
    time; `faults` are those that belong to no notebook."""

    lessons: tuple[Lesson, ...]
    peaks: tuple[int, ...]
    peak: int
    faults: tuple[str, ...]
    apart: str

    @property
    def ok(self) -> bool:
        return not self.faults and not any(lesson.faults for lesson in self.lessons)


@dataclass
class Person:
    number: int
    folder: Path
    uid: int
    process: subprocess.Popen | None = None
    now: str = ""
    peak: int = 0
    by_lesson: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    ended: list[dict] = field(default_factory=list)
    read: int = 0

    def look(self) -> None:
        """Read on in what the person's process has said."""
        with (self.folder / "said").open("rb") as said:
            said.seek(self.read)
            lines = said.read()
        whole = lines[: lines.rfind(b"\n") + 1]
        self.read += len(whole)
        for line in map(json.loads, whole.splitlines()):
            self.now = line.get("begun", self.now)
            if "ended" in line:
                self.ended.append(line)


def hold(
    root: Path,
    people: int,
    names: Sequence[str],
    *,
    timeout: int = 600,
    every: float = 0.5,
    closed: bool = False,
) -> Report:
    """Let `people` go through the notebooks `names` ("notebooks/NN_slug.ipynb") of the course in
    `root`, all at once, each in this order, and report.

    Memory is looked at every `every` seconds, less often where looking takes long: what lives for
    less than that can be missed. Where nobody but root may read this Python, that is a fault,
    unless `closed` says that it is known. Leaves nothing behind.
    """
    mark = uuid.uuid4().hex
    room = Path(tempfile.mkdtemp(prefix="workshop-"))
    room.chmod(0o755)
    apart = separation()
    try:
        course = share(root, room)
        before = digest(course)
        seats = enumerate(free_uids(people), 1)
        everybody = [seat(room, course, number, uid) for number, uid in seats]
        known = {course, *(person.folder for person in everybody)}
        uids = {person.uid for person in everybody} if apart in OWN_UIDS else set()
        left, peak = None, 0
        try:
            for person in everybody:
                begin(person, course, names, timeout, mark, apart)
            peak = watch(everybody, every)
            left = clear(mark, GONE)
        finally:
            if left is None:
                clear(mark, 0)
        faults = [] if closed or apart != "reader" else [cannot_start()]
        faults += [f"a process outlived its kernel: {line}" for line in left]
        faults += [f"the read-only course has changed: {name}" for name in changed(before, course)]
        faults += [
            f"written outside of everybody's folders: {p}" for p in strays(room, known, uids)
        ]
        lessons = []
        for person in everybody:
            person.look()
            lessons += results(person, names, course)
        peaks = tuple(person.peak for person in everybody)
        return Report(tuple(lessons), peaks, peak, tuple(faults), TOLD[apart])
    finally:
        for folder in [room, *room.rglob("*")]:
            if folder.is_dir() and not folder.is_symlink():
                folder.chmod(0o755)
        shutil.rmtree(room)


def share(root: Path, room: Path) -> Path:
    """Copy the course into the room, compile the package, and make all of it read-only."""
    course = room / "course"
    left_behind = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "answers")
    for name in SHARED:
        if (root / name).is_dir():
            shutil.copytree(root / name, course / name, ignore=left_behind)
    compiled = [sys.executable, "-m", "compileall", "-q", str(course / "ddp_lessons")]
    subprocess.run(compiled, check=True)
    for path in [course, *course.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    return course


def seat(room: Path, course: Path, number: int, uid: int) -> Person:
    """A person's folders, with a copy of what is worked in."""
    folder = room / f"person_{number}"
    for name in ("home", "tmp"):
        (folder / name).mkdir(parents=True)
    for name in OWN:
        if (course / name).is_dir():
            shutil.copytree(course / name, folder / name)
    (folder / "said").touch()
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o700 if path.is_dir() else 0o600)
    return Person(number, folder, uid)


def begin(
    person: Person, course: Path, names: Sequence[str], timeout: int, mark: str, apart: str
) -> None:
    if apart in OWN_UIDS:
        for path in [person.folder, *person.folder.rglob("*")]:
            os.chown(path, person.uid, person.uid)
    home, temporary = person.folder / "home", person.folder / "tmp"
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("JUPYTER", "IPYTHON", "XDG_", "PYTEST", "MPL"))
    }
    env |= {
        **dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(temporary)),
        **dict.fromkeys(("USER", "LOGNAME"), f"person_{person.number}"),
        "HOME": str(home),
        MARK: mark,
        "PYTHONPATH": str(course),
        "IPYTHONDIR": str(home / ".ipython"),
        "JUPYTER_DATA_DIR": str(home / "jupyter"),
        "JUPYTER_CONFIG_DIR": str(home / ".jupyter"),
        "JUPYTER_RUNTIME_DIR": str(home / "jupyter" / "runtime"),
    }
    script = [sys.executable, str(HERE / "workshop_user.py"), str(person.folder), str(timeout)]
    with (
        (person.folder / "said").open("wb") as said,
        (person.folder / "stderr").open("wb") as stderr,
    ):
        person.process = subprocess.Popen(
            [*as_user(person.uid, apart), *script, *names],
            env=env,
            cwd=person.folder,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=stderr,
        )


def watch(everybody: Sequence[Person], every: float) -> int:
    """Wait until all are through, and note the memory meanwhile; the most of all at one time."""
    peak = 0
    while any(person.process.poll() is None for person in everybody):
        began = time.monotonic()
        below = descendants({person.process.pid for person in everybody})
        sizes = []
        for person in everybody:
            person.look()
            sizes += (own := [size(process) for process in below[person.process.pid]])
            used = together(own)
            person.peak = max(person.peak, used)
            person.by_lesson[person.now] = max(person.by_lesson[person.now], used)
        peak = max(peak, together(sizes))
        # Reading the memory of many processes takes time that the lessons need.
        time.sleep(max(every, 4 * (time.monotonic() - began)))
    return peak


# Afterwards


def results(person: Person, names: Sequence[str], course: Path) -> list[Lesson]:
    """A Lesson for each notebook, also where the person's process ended before it."""
    ended = {line["ended"]: line for line in person.ended}
    lessons = []
    for name in names:
        line = ended.get(name)
        if line is None:
            said = (person.folder / "stderr").read_text(errors="replace").strip()
            code = person.process.returncode
            line = {"faults": [f"was not gone through: its process ended with {code}. {said}"]}
        elif line["package"] != str(course / "ddp_lessons"):
            line["faults"].append(f"used the package in {line['package']}, not the shared one")
        measured = line.get("seconds", 0.0), line.get("cpu", 0.0), line.get("ranks", 0)
        faults = tuple(line["faults"])
        lessons.append(Lesson(person.number, name, *measured, person.by_lesson[name], faults))
    return lessons
