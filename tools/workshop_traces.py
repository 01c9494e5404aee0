"""What a room of people must not leave behind: changes, files in other places, processes."""

from __future__ import annotations

import contextlib
import hashlib
import stat
import tempfile
import time
from collections.abc import Collection
from pathlib import Path

import psutil

MARK = "DDP_LESSONS_WORKSHOP"  # in the environment of every process of a room
PUBLIC = ("/tmp", "/var/tmp", "/dev/shm", "/run/lock")  # where everybody may write


def digest(folder: Path) -> dict[str, str]:
    """Each file's content, type and permissions, as text that is the same if they are."""
    found = {}
    for path in sorted(folder.rglob("*")):
        kind = stat.filemode(path.lstat().st_mode)
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[path.relative_to(folder).as_posix()] = f"{kind} {content}"
    return found


def changed(before: dict[str, str], folder: Path) -> list[str]:
    after = digest(folder)
    return sorted(name for name in before.keys() | after if before.get(name) != after.get(name))


def strays(room: Path, known: Collection[Path], uids: Collection[int]) -> list[Path]:
    """What stands in the room beside the folders that it began with, and, in the folders where
    everybody may write, what belongs to one of these user ids."""
    found = [path for path in room.iterdir() if path not in known]
    todo = {Path(place).resolve() for place in (*PUBLIC, tempfile.gettempdir())}
    while todo:
        folder = todo.pop()
        with contextlib.suppress(OSError):  # it may have gone meanwhile
            for path in folder.iterdir():
                state = path.lstat()
                if path.is_relative_to(room):
                    continue
                if state.st_uid in uids:
                    found.append(path)
                elif stat.S_ISDIR(state.st_mode) and state.st_mode & stat.S_IWOTH:
                    todo.add(path)
    return sorted(found)


def clear(mark: str, seconds: float) -> list[str]:
    """Wait until no process of the room lives; kill those that still do, and return their command
    lines."""
    deadline = time.monotonic() + seconds
    while (left := marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.1)
    told = []
    for process in left:
        with contextlib.suppress(psutil.Error):
            told.append(" ".join(process.cmdline())[:200])
            process.kill()
    return told


def marked(mark: str) -> list[psutil.Process]:
    """The living processes that were started in the room. One without an environment has ended and
    waits to be reaped."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(MARK) == mark:
                found.append(process)
    return found
