"""On a network whose name server does not answer, torch's stores would wait for it.

A store looks up the name of ::ffff:127.0.0.1, which is in no table of this computer, once in each
process. glibc asks twice, for five seconds each time, and torch complains on stderr.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

IMPATIENT = "timeout:1 attempts:1"  # what glibc's resolver takes in RES_OPTIONS
COMPLAINT = re.compile(r"^\[W.*hostname of the client socket cannot be retrieved.*\n", re.MULTILINE)


@functools.cache
def settle(store: Callable[[], AbstractContextManager]) -> None:
    """Have the first store of this process be one that waits a second, and that does not complain
    in the notebook. A thread keeps the options with which it has first used the resolver: call this
    in no thread of the reader's."""
    before = os.environ.get("RES_OPTIONS")
    with contextlib.suppress(OSError, RuntimeError), hushed():  # launch()'s own store says it
        os.environ.setdefault("RES_OPTIONS", IMPATIENT)
        with store():
            pass
    if before is None:
        os.environ.pop("RES_OPTIONS", None)


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
