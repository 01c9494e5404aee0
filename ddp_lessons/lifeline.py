"""The line that every worker hangs on: a FIFO whose write end only the launching process holds.

When launch() lets go of it, or when the launching process dies, however it dies, every process that
hangs on it is killed, with its process group. Windows has no such FIFOs: see windows.py.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from ddp_lessons import windows

NAME = "lifeline"  # of the FIFO in a folder


def hold(folder: Path) -> Callable[[], None]:
    """Hold a new lifeline in `folder`; returns the function that lets go of it."""
    if not hasattr(os, "mkfifo"):
        (folder / NAME).write_text(str(os.getpid()))
        return lambda: None
    os.mkfifo(folder / NAME, 0o600)
    # Read and write: opening for writing alone would block until a worker opens the other end.
    ends = [os.open(folder / NAME, os.O_RDWR)]
    _held.append(ends)

    def cut() -> None:
        while ends:
            os.close(ends.pop())
        if ends in _held:
            _held.remove(ends)

    return cut


_held: list[list[int]] = []


def _let_go_of_all() -> None:
    """In a child that this process forks: the workers hang on this process, not on its children."""
    while _held:
        ends = _held.pop()
        while ends:  # emptied, so that an exit of this child closes nothing twice
            os.close(ends.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_of_all)


@contextlib.contextmanager
def held(folder: Path) -> Iterator[Callable[[], None]]:
    """Hold the lifeline of a run for the block, and at most to this process's normal exit:
    multiprocessing would wait there for the ranks of a launch on another thread."""
    cut = hold(folder)
    atexit.register(cut)
    try:
        yield cut
    finally:
        cut()
        atexit.unregister(cut)


def lead_own_group() -> None:
    """Leave the kernel's process group: Stop must reach the kernel only, and stopping a rank must
    take its children along."""
    if hasattr(os, "setpgid") and os.getpgrp() != os.getpid():
        os.setpgid(0, 0)
    # Python heeds none that it was started without, as in the background of a shell.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def hang_on(folder: Path) -> None:
    """Kill this process's group as soon as the launching process has let go of the lifeline.

    Neither a SIGTERM handler nor a blocked collective stands in the way: SIGKILL comes from a
    thread of its own and, on Linux, from the operating system too, for a rank that keeps the GIL.
    """
    if not hasattr(os, "mkfifo"):
        windows.hang_on(int((folder / NAME).read_text()))
        return
    fd = reach(folder)
    _let_system_kill(fd, -os.getpgrp())
    os.set_blocking(fd, True)

    def watch() -> None:
        while os.read(fd, 1):
            pass
        os.killpg(os.getpgrp(), signal.SIGKILL)

    threading.Thread(target=watch, name=NAME, daemon=True).start()


def hang_on_without_a_thread(folder: Path) -> None:
    """The same for this process alone, by the operating system alone. Nothing outside Linux."""
    if hasattr(os, "mkfifo"):
        fd = reach(folder)
        _let_system_kill(fd, os.getpid())
        with contextlib.suppress(BlockingIOError):  # that is: it is still held
            os.read(fd, 1)
            os._exit(1)


def reach(folder: Path) -> int:
    """Open the reading end, and leave if the folder has gone: the launching process has ended."""
    try:
        # Non-blocking: a blocking open would wait for ever if the launching process is dead.
        return os.open(folder / NAME, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        os._exit(1)


def _let_system_kill(fd: int, owner: int) -> None:
    """Have Linux send SIGKILL to a process, or to a group if negative, at the end of file."""
    with contextlib.suppress(OSError, AttributeError):  # not Linux, or not all of it
        import fcntl

        fcntl.fcntl(fd, fcntl.F_SETOWN, owner)
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(fd, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
