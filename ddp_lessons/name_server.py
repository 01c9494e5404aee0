"""On a network whose name server does not answer, torch's stores would wait for it.

A store looks up the name of ::ffff:127.0.0.1, which is in no table of this computer, once in each
process. glibc asks twice, for five seconds each time, and torch complains on stderr.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

SECONDS, TRIES = 1, 2  # of two questions one may get lost
IMPATIENT = f"timeout:{SECONDS} attempts:{TRIES}"  # what glibc's resolver takes in RES_OPTIONS
COMPLAINT = re.compile(r"^\[W.*hostname of the client socket cannot be retrieved.*\n", re.MULTILINE)


_lock = threading.Lock()


def settle(store: Callable[[], AbstractContextManager]) -> None:
    """Have the first store of this process be one that waits no longer than a rank's would, and
    does not complain in the notebook. What the reader's own lookups wait for stays as it is: call
    this in a thread of its own."""
    with _lock:  # of two threads one would put back what the other one has set meanwhile
        _settle(store)


@functools.cache
def _settle(store: Callable[[], AbstractContextManager]) -> None:
    be_impatient()
    with contextlib.suppress(OSError, RuntimeError), hushed(), store():  # launch()'s own says it
        pass


def be_impatient() -> None:
    """Let this thread's lookups, and no other's, ask a name server as briefly as a rank's do. Only
    glibc has what it takes; elsewhere nothing changes."""
    if not sys.platform.startswith("linux"):
        return
    with contextlib.suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        begin, state = libc["__res_init"], libc["__res_state"]
        state.restype = ctypes.POINTER(ctypes.c_int)
        begin()
        # The first two numbers of glibc's struct __res_state: seconds, and tries.
        state()[0], state()[1] = SECONDS, TRIES


@contextlib.contextmanager
def hushed() -> Iterator[None]:
    """Nothing that C++ says gets to stderr meanwhile."""
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def without_complaint(stderr: str) -> str:
    """What a rank said on stderr, without torch's line about names: it says nothing of the run, and
    is there or not with the network."""
    return COMPLAINT.sub("", stderr)
