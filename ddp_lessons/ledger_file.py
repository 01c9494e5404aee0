"""The file of a rank's ledger: fixed-size records in mapped memory, and a second file with the
texts that they refer to by number. The rank writes, its parent reads at any time."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import mmap
import os
import struct
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

CALLS, NAMES = "calls.bin", "calls.names"  # in the rank's folder


class Fields(NamedTuple):
    """A record without its shape. Times are monotonic seconds, 0 for what has not happened; the
    texts group, file, wait_file and detail are numbers, and so are op, reduce_op and dtype."""

    called: float
    seq: int
    index: int
    returned: float
    waiting: float
    done: float
    bytes: int
    line: int
    wait_line: int
    peer: int
    tag: int
    group: int
    file: int
    wait_file: int
    detail: int
    op: int
    reduce_op: int
    dtype: int
    dimensions: int
    flags: int
    state: int


# Fields, and after them the first six dimensions of the shape.
RECORD = struct.Struct("<dII3dqIIiiHHHHBBBBBBxx6q")
SIZE = RECORD.size
# The same, with all that is known of a call before it is made as bytes that stand ready.
READY = struct.Struct("<dII24x88s")  # called, seq, index; nothing yet; bytes and all after them
HEAD = SIZE - 88
TIME, LINE, NUMBER, SIGNED = (struct.Struct(f"<{code}") for code in "dIHi")
# Where in a record what is written later stands.
RETURNED, WAITING, DONE, WAIT_LINE, PEER, WAIT_FILE, STATE = 16, 24, 32, 52, 56, 68, 77

# Flags; ANYBODY is a recv that names no peer, UNKNOWN a call whose detail could not be kept.
ASYNC, BATCHED, ANYBODY, UNKNOWN = 1, 2, 4, 8
# States; REFUSED is a call that torch refused before it took part in anything.
EMPTY, OPEN, CLOSED, RAISED, REFUSED = range(5)

CHUNK = 1 << 16  # bytes that the file grows by: a multiple of every page size
PER_CHUNK = CHUNK // SIZE
KEEP = 128 * PER_CHUNK  # the first 65,536 calls are kept
RING = 8 * PER_CHUNK  # and of those after them the last 4,096
LOST = b"lost"  # in the file of names: calls are missing from here on

Slot = tuple[mmap.mmap, int]  # one record: the part of the file, and where in it


def unpack(record: bytes) -> tuple[Fields, tuple[int, ...]]:
    """A record as numbers, and six dimensions: 0 for those that its shape does not have."""
    found = RECORD.unpack(record)
    return Fields._make(found[:-6]), found[-6:]


def seq(record: bytes) -> int:
    return LINE.unpack_from(record, 8)[0]


def index(record: bytes) -> int:
    return LINE.unpack_from(record, 12)[0]


def steady(records: bytes) -> bool:
    """Whether no call between these is missing."""
    count = len(records) // SIZE
    return seq(records[-SIZE:]) - seq(records[:SIZE]) == count - 1


def constant(record: bytes) -> bytes:
    """The part of a record that says what was called with what, and not when, where or how often:
    bytes, peer, tag, group, detail, op and so on, and the shape."""
    return record[40:48] + record[56:66] + record[70:77] + record[80:]


def column(records: bytes, name: str) -> set[int]:
    """The values of a field of one byte in all of these records."""
    return set(records[72 + ("op", "reduce_op", "dtype").index(name) :: SIZE])


def alike(sides: Sequence[bytes]) -> bool:
    """Whether the same calls stand in each of these records, in the same order, of one group, and
    none with a detail: the numbers of texts mean something else on each rank."""
    first = sides[0]
    if any(len(set(first[at::SIZE])) > 1 for at in (64, 65)):  # the group
        return False
    if any(any(first[at::SIZE]) for at in (70, 71)):  # the detail
        return False
    if any(REFUSED in side[STATE::SIZE] or not steady(side) for side in sides):
        return False
    compared = (*range(12, 16), *range(40, 48), *range(56, 66), *range(70, 77), *range(80, SIZE))
    return all(first[at::SIZE] == side[at::SIZE] for side in sides[1:] for at in compared)


class LedgerFile:
    """The writing end. Threads of one process may share it."""

    def __init__(self, folder: Path):
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
        self._fd = os.open(folder / CALLS, flags, 0o600)
        self._names_fd = os.open(folder / NAMES, flags | os.O_APPEND, 0o600)
        self._chunks: list[mmap.mmap] = []
        self._lock = threading.Lock()
        self._next = itertools.count()
        self._names: dict[str, int] = {}

    def begin(self, record: bytes, index: int) -> Slot | None:
        """Write the record of the next call, of which `record` is all after HEAD, with its number
        and the time; None once the disk is full."""
        seq = next(self._next)
        slot = seq if seq < KEEP else KEEP + (seq - KEEP) % RING
        number = slot // PER_CHUNK
        chunk = self._chunks[number] if number < len(self._chunks) else self._grow_to(number)
        if chunk is None:
            return None
        at = slot % PER_CHUNK * SIZE
        # Empty still: in the ring it held an older call.
        READY.pack_into(chunk, at, time.monotonic(), seq, index, record)
        chunk[at + STATE] = OPEN  # last: from here on the record counts
        return chunk, at

    def name(self, text: str) -> int:
        """The number, from 1, that stands for a text in the records; 0 if there are too many."""
        number = self._names.get(text)
        if number is None:
            with self._lock:
                number = self._names.setdefault(text, len(self._names) + 1)
                if number >= 1 << 16:
                    return 0
                with contextlib.suppress(OSError):
                    os.write(self._names_fd, json.dumps([number, text]).encode() + b"\n")
        return number

    def _grow_to(self, number: int) -> mmap.mmap | None:
        while number >= len(self._chunks):
            with self._lock:
                if number >= len(self._chunks) and not self._grow():
                    return None
        return self._chunks[number]

    def _grow(self) -> bool:
        """One chunk more, written out with zeros first. On a full disk a write to a mapped page
        that has no block would end the process by SIGBUS; reserved blocks make new pages slow."""
        start = len(self._chunks) * CHUNK
        try:
            os.lseek(self._fd, start, os.SEEK_SET)
            if os.write(self._fd, bytes(CHUNK)) != CHUNK:
                raise OSError(errno.ENOSPC, "the disk is full")
            self._chunks.append(mmap.mmap(self._fd, CHUNK, offset=start))
        except OSError:
            self.give_up()
            return False
        return True

    def give_up(self) -> None:
        """Say that calls are missing from here on."""
        with contextlib.suppress(OSError):
            os.write(self._names_fd, LOST + b"\n")
