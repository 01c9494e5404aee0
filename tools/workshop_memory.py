"""How much memory processes take up together: ranks are forks of one server and share its pages."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil


class Size(NamedTuple):
    """Bytes. `own`: what the process has written, of pages that it shares with its forks an equal
    share (PSS). `files`: pages of libraries, which are there once for everybody."""

    own: int
    files: int


def size(process: psutil.Process) -> Size:
    """RSS would count the pages that forks share many times, USS not at all. PSS alone would depend
    on who else on this machine has loaded torch. Where the system tells none of it: USS."""
    with contextlib.suppress(OSError, KeyError):
        text = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
        lines = (line.split() for line in text.splitlines()[1:])
        bytes_of = {words[0].rstrip(":"): int(words[1]) * 1024 for words in lines}
        own = bytes_of["Pss_Anon"] + bytes_of["Pss_Shmem"]
        return Size(own, bytes_of["Rss"] - bytes_of["Anonymous"])
    with contextlib.suppress(psutil.Error):
        return Size(process.memory_full_info().uss, 0)
    return Size(0, 0)


def together(sizes: Sequence[Size]) -> int:
    """What these processes take up. They map much the same files, so the most of one stands for
    all of them."""
    return sum(one.own for one in sizes) + max((one.files for one in sizes), default=0)


def descendants(roots: Iterable[int]) -> dict[int, list[psutil.Process]]:
    """All processes below each of the roots, which do not count: they stand for Jupyter."""
    children = defaultdict(list)
    for process in psutil.process_iter(["ppid"]):
        children[process.info["ppid"]].append(process)
    found = {}
    for root in roots:
        found[root], todo = [], [root]
        while todo:
            new = children[todo.pop()]
            found[root] += new
            todo += [process.pid for process in new]
    return found
