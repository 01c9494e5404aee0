"""On Linux: a small process above all workers, from which no child of theirs can get away.

A process group does not hold a child that has made a session of its own, and what outlives its
parent goes to process 1, where nobody can tell whose it was. A guard adopts such orphans instead.
Elsewhere nothing here does anything, and the groups and the lifeline have to do.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from pathlib import Path

from ddp_lessons import lifeline

FILE = "guard"  # in the folder of the lifeline: the process ids of the guard and of its ward
PATIENCE = 5.0  # seconds for what has been killed to be gone
PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> bool:
    """From now on a descendant of this process that loses its parent becomes this one's child."""
    if sys.platform != "linux":
        return False
    return ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def stand(folder: Path) -> None:
    """Fork: the child goes on as the guard's ward, the parent is the guard and does not return.

    When the ward ends, or when the launching process lets go of the lifeline in `folder`, the guard
    kills all that the ward has started, and what that has started, and ends itself.
    """
    if not adopt_orphans():
        return
    line = lifeline.reach(folder)
    ward = os.fork()
    if not ward:
        os.close(line)
        return
    try:
        # The kernel's group may be killed as a whole.
        os.setpgid(0, 0)
        for fd in {int(path.name) for path in Path("/proc/self/fd").iterdir()} - {0, 1, 2, line}:
            with contextlib.suppress(OSError):  # the listing itself had one
                os.close(fd)
        (folder / FILE).write_text(f"{os.getpid()} {ward}")
        _watch(line, ward)
    finally:
        end_all()
        os._exit(0)


def sweep(folder: Path) -> None:
    """Kill what workers that are gone have left behind, under the guard of `folder`.

    As long as a worker lives, it adopts the orphans below it. So the guard's children, apart from
    the ward, belong to workers that have ended.
    """
    try:
        guard, ward = map(int, (folder / FILE).read_text().split())
    except (OSError, ValueError):
        return  # there is none, or it has only just begun
    deadline = time.monotonic() + PATIENCE
    # A process id may be given anew: only a child of this process is our guard.
    while parent(guard) == os.getpid() and (left := children(guard) - {ward}):
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return
        time.sleep(0.001)


def children(pid: int) -> set[int]:
    """The children of a process, those included that wait to be reaped."""
    try:
        lists = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:  # a thread has ended meanwhile
        lists = []
    if lists:
        return {int(child) for one in lists for child in one.split()}
    # Not every Linux keeps those lists.
    found = (path.name for path in Path("/proc").glob("[0-9]*"))
    return {int(name) for name in found if parent(int(name)) == pid}


def parent(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[1])


def _watch(line: int, ward: int) -> None:
    """Return when the ward has ended or the lifeline has been cut; reap orphans until then."""
    awake, alarm = os.pipe()
    os.set_blocking(alarm, False)
    signal.set_wakeup_fd(alarm, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while not _is_cut(line) and ward not in _reaped():
        if awake in select.select([line, awake], [], [])[0]:
            os.read(awake, 4096)


def _is_cut(line: int) -> bool:
    # Not select: a line that was cut before this process took hold of it never becomes ready.
    try:
        return not os.read(line, 1)
    except BlockingIOError:
        return False


def _reaped() -> set[int]:
    """The children that have ended since the last call."""
    ended = set()
    with contextlib.suppress(ChildProcessError):
        while pid := os.waitpid(-1, os.WNOHANG)[0]:
            ended.add(pid)
    return ended


def end_all() -> None:
    """Kill the children, and theirs, which become this process's own, until there are none."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for pid in children(os.getpid()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        _reaped()
        time.sleep(0.001)
