"""The Stop button while ranks run: it is heard once, and never in the middle of clean-up."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class Stop:
    """What has been heard. `pressed` is true from the first press on."""

    def __init__(self) -> None:
        self.pressed = self._deaf = False

    def ignore(self) -> None:
        """From now on a press is only noted: what comes must not be interrupted."""
        self._deaf = True


@contextlib.contextmanager
def heard_once() -> Iterator[Stop]:
    """For the block, only the first press interrupts. Readers press again when nothing seems to
    happen, and a clean-up that is interrupted leaves processes behind.

    Off the main thread, and where the program has no handler of Python's, nothing changes.
    """
    stop, before = Stop(), signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield stop
        return

    def handler(number: int, frame: FrameType | None) -> None:
        first = not stop.pressed and not stop._deaf
        stop.pressed = True
        if first:
            before(number, frame)

    signal.signal(signal.SIGINT, handler)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
