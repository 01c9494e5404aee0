"""Where the runs of this Python process keep their logs, and how old ones go away."""

from __future__ import annotations

import atexit
import contextlib
import errno
import itertools
import os
import platform
import shutil
import tempfile
import threading
from functools import cache
from pathlib import Path

PREFIX = "ddp_lessons-"
SHARED = "DDP_LESSONS_SHARED"  # a folder that all nodes of a cluster see, if it is not the home
FULL = (errno.ENOSPC, errno.EDQUOT)  # of a disk, or of this user's share of it
_numbers = itertools.count(1)
_lock = threading.Lock()


def session(shared: bool = False) -> Path:
    """This process's folder, made on first use. Folders of processes that are gone are removed.
    shared: on a disk that the nodes of a cluster share, if there is one."""
    with _lock:
        folder = _session(os.getpid(), shared)
        if not folder.is_dir():  # somebody has tidied up the temporary folder
            _session.cache_clear()
            folder = _session(os.getpid(), shared)
        return folder


@cache
def _session(owner: int, shared: bool) -> Path:
    home, prefix = Path(tempfile.gettempdir()), PREFIX
    if shared:
        home = Path(os.environ.get(SHARED) or Path.home() / ".ddp_lessons")
        home.mkdir(parents=True, exist_ok=True)
        # Of another machine's processes nobody knows whether they are gone: locks may be local.
        prefix += f"{platform.node()}-"
    for old in home.glob(f"{prefix}*"):
        if _is_left_over(old):
            shutil.rmtree(old, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=home))
    _hold(folder)
    atexit.register(_clean, folder, owner)
    return folder


def new_run(shared: bool = False) -> Path:
    """A new, empty folder for one launch."""
    folder = session(shared) / f"run_{next(_numbers)}"
    folder.mkdir()
    return folder


def is_full(folder: Path) -> bool:
    """Whether nothing more can be kept there. Asked by writing: a quota shows in no other way."""
    probe = folder / "probe"
    try:
        probe.write_bytes(bytes(1 << 16))
        return False
    except OSError as error:
        return error.errno in FULL
    finally:
        probe.unlink(missing_ok=True)


def cell_file() -> Path:
    """A new path for the code of a %%ranks cell."""
    folder = session() / f"cell_{next(_numbers)}"
    folder.mkdir()
    return folder / "cell.py"


def _hold(folder: Path) -> None:
    """Lock the folder for as long as this process lives: a crash releases it, a pid could lie."""
    with contextlib.suppress(ImportError):
        import fcntl

        # Locked first and named after that: no other process finds it without its lock.
        fd = os.open(folder / "lock.new", os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        (folder / "lock.new").rename(folder / "lock")


def _is_left_over(folder: Path) -> bool:
    try:
        import fcntl

        fd = os.open(folder / "lock", os.O_RDWR)
    except (ImportError, OSError):
        return False  # not ours, or just being made
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
    finally:
        os.close(fd)


def _clean(folder: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def is_cell(path: Path) -> bool:
    """Whether cell_file() made this path."""
    return path.name == "cell.py" and path.parent.parent == session()
