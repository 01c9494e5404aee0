"""Every communication call that a rank's script makes, as fixed-size records in a mapped file.

`start(folder)` puts a wrapper around each public communication function of torch.distributed, for
this process. What torch itself calls, inside DDP say, is not recorded. The parent process reads the
same file, also while the rank runs or after it has died: see calls.py.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import mmap
import os
import struct
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from ddp_lessons import places
from ddp_lessons.operations import CODES, NOBODY, OPERATIONS, Operation

SWITCH = "DDP_LESSONS_LEDGER"  # "0" in a rank's environment: no ledger
FILE, NAMES = "calls.bin", "calls.names"

# called, returned, waiting, done (monotonic seconds; 0: not yet), bytes, seq, line, wait_line,
# peer, tag, index, group, file, wait_file, detail, operation, reduce op, dtype, dimensions, flags,
# state, the first six dimensions
RECORD = struct.Struct("<4dqIIIiiIHHHHBBBBBBxx6q")
RETURNED, WAITING, DONE = 8, 16, 24  # offsets of these three
WAIT_LINE, PEER, WAIT_FILE, STATE = 48, 52, 68, 77
TIME, LINE, NUMBER, SIGNED = (struct.Struct(f"<{code}") for code in "dIHi")
ASYNC, BATCHED, ANYBODY = 1, 2, 4  # flags; the last is a recv that names no peer
EMPTY, OPEN, CLOSED, RAISED = range(4)  # states

CHUNK = 1 << 16  # bytes that the file grows by: a multiple of every page size
PER_CHUNK = CHUNK // RECORD.size
KEEP = 128 * PER_CHUNK  # the first 65,536 calls are kept
RING = 8 * PER_CHUNK  # and of those after them the last 4,096
Slots = tuple[tuple[mmap.mmap, int], ...]  # records: the part of the file, and where in it
LOST = b"lost"  # in the file of names: the disk was full, calls are missing from here on


def start(folder: Path) -> None:
    """Record this process's communication calls in `folder` from now on."""
    if os.environ.get(SWITCH) == "0":
        return
    import torch.distributed as dist

    ledger = Ledger(folder)
    for operation in OPERATIONS.values():
        inner = getattr(dist.distributed_c10d, operation.name, None)  # some are new in 2.13
        if inner is not None:
            wrapper = ledger.wrap(inner, operation)
            setattr(dist.distributed_c10d, operation.name, wrapper)
            if hasattr(dist, operation.name):
                setattr(dist, operation.name, wrapper)
    dist.Work.wait = ledger.wrap_wait(dist.Work.wait)


class Ledger:
    """The writing end. Each call gets the next slot; the file grows with them."""

    def __init__(self, folder: Path):
        import torch.distributed as dist

        self._dist = dist
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
        self._fd = os.open(folder / FILE, flags, 0o600)
        self._names_fd = os.open(folder / NAMES, flags | os.O_APPEND, 0o600)
        self._chunks: list[mmap.mmap] = []
        self._lock = threading.Lock()
        self._next = itertools.count()
        self._names: dict[str, int] = {}
        self._files: dict[str, int] = {}  # 0: a file whose calls are not recorded
        self._counts: dict[tuple, itertools.count] = {}
        self._groups: dict[str, tuple[int, tuple[int, ...]]] = {}
        self._works: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
        self._on = True
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._stop)  # a child is no rank

    def _stop(self) -> None:
        self._on = False

    def wrap(self, inner: Callable, operation: Operation) -> Callable:
        """`inner`, recording its calls from outside torch."""
        code = _unwrapped(inner).__code__
        names = code.co_varnames[: code.co_argcount]
        batch = operation.name == "batch_isend_irecv"
        files = self._files

        @functools.wraps(inner)
        def call(*args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)
            file = files.get(frame.f_code.co_filename)
            if file is None:
                file = self._know_file(frame)
            if not file or not self._on:
                return inner(*args, **kwargs)
            given = dict(zip(names, args, strict=False), **kwargs)
            if batch:
                slots = self._open_batch(given, file, frame)
            else:
                slots = self._open(operation, given, file, frame)
            try:
                result = inner(*args, **kwargs)
            except BaseException:
                close(slots, RAISED)
                raise
            close(slots, CLOSED)
            if result is not None and slots:
                self._remember(operation, result, slots)
            return result

        return call

    def wrap_wait(self, inner: Callable) -> Callable:
        """`Work.wait`, recording when it was called on a Work that a recorded call returned."""
        works = self._works

        @functools.wraps(inner)
        def wait(work: Any, *args: Any, **kwargs: Any) -> Any:
            slots = works.pop(work, None) if works else None
            if not slots or not self._on:
                return inner(work, *args, **kwargs)
            frame = places.readers_frame(sys._getframe(1))
            file = self._name(frame.f_code.co_filename)
            for chunk, at in slots:
                LINE.pack_into(chunk, at + WAIT_LINE, frame.f_lineno)
                NUMBER.pack_into(chunk, at + WAIT_FILE, file)
                TIME.pack_into(chunk, at + WAITING, time.monotonic())
            result = inner(work, *args, **kwargs)
            for chunk, at in slots:
                TIME.pack_into(chunk, at + DONE, time.monotonic())
            return result

        return wait

    def _know_file(self, frame: FrameType) -> int:
        """The number of the caller's file; 0 for one of torch's own."""
        path = frame.f_code.co_filename
        if places.is_torchs(path):
            number = 0
        elif places.is_readers(path):
            number = self._name(path)
        else:
            # An installed package, or a thread's first frame: the reader's line is further out, in
            # another file each time.
            return self._name(places.readers_frame(frame).f_code.co_filename)
        self._files[path] = number
        return number

    def _open_batch(self, given: Mapping[str, Any], file: int, frame: FrameType) -> Slots:
        slots = []
        for one in given.get("p2p_op_list") or ():
            name = getattr(getattr(one, "op", None), "__name__", "")
            if name in ("isend", "irecv"):
                facts = {"tensor": one.tensor, "group": one.group, "tag": one.tag}
                facts |= {"src": one.peer, "dst": one.peer}
                slots += self._open(OPERATIONS[name], facts, file, frame, BATCHED)
        return tuple(slots)

    def _open(
        self,
        operation: Operation,
        given: Mapping[str, Any],
        file: int,
        frame: FrameType,
        flags: int = 0,
    ) -> Slots:
        """Write the record of a call that begins. Nothing for a call that torch will refuse or that
        does nothing: no process group yet, or one that this rank is not in."""
        group, ranks = self._group(given.get("group"))
        if not group or operation.local(given):
            return ()
        try:
            size, peer, reduce_op, dtype, shape, detail = operation.facts(given, ranks)
        except (AttributeError, TypeError, ValueError, IndexError, KeyError):
            # Wrong arguments: torch says so better.
            size, peer, reduce_op, dtype, shape, detail = operation.nothing
        if not places.is_readers(frame.f_code.co_filename):
            frame = places.readers_frame(frame)
        tag = given.get("tag") or 0
        side = None
        if operation.side:
            side = operation.side, peer, tag
            if peer == NOBODY:
                flags |= ANYBODY
        if given.get("async_op") or operation.name in ("isend", "irecv"):
            flags |= ASYNC
        counter = self._counts.get((group, side))
        if counter is None:
            counter = self._counts.setdefault((group, side), itertools.count())
        index, seq = next(counter), next(self._next)
        slot = seq if seq < KEEP else KEEP + (seq - KEEP) % RING
        number = slot // PER_CHUNK
        chunk = self._chunks[number] if number < len(self._chunks) else self._grow_to(number)
        if chunk is None:
            return ()
        at = slot % PER_CHUNK * RECORD.size
        chunk[at + STATE] = EMPTY  # in the ring it held an older call
        six = shape if len(shape) == 6 else (*shape, 0, 0, 0, 0, 0, 0)[:6]
        RECORD.pack_into(
            chunk,
            at,
            *(time.monotonic(), 0.0, 0.0, 0.0),
            *(size, seq, frame.f_lineno, 0, peer, tag, index),
            *(group, file, 0, self._name(detail) if detail else 0),
            *(CODES[operation.name], reduce_op, dtype, len(shape), flags, EMPTY),
            *six,
        )
        chunk[at + STATE] = OPEN  # last: from here on the record counts
        return ((chunk, at),)

    def _remember(self, operation: Operation, result: Any, slots: Slots) -> None:
        """Know a returned Work again when it is waited for; and who a recv has received from."""
        if operation.name == "recv":
            chunk, at = slots[0]
            SIGNED.pack_into(chunk, at + PEER, result)
        elif isinstance(result, list) and len(result) == len(slots):
            for work, slot in zip(result, slots, strict=True):
                self._works[work] = (slot,)
        elif isinstance(result, list):
            for work in result:
                self._works[work] = slots  # NCCL makes one Work of a whole batch
        elif hasattr(result, "wait"):
            self._works[result] = slots

    def _group(self, group: Any) -> tuple[int, tuple[int, ...]]:
        """The number of a process group and its ranks; 0 if this rank has no such group."""
        dist = self._dist
        group = dist.group.WORLD if group is None else group
        name = getattr(group, "group_name", None)
        if name is None:
            return 0, ()
        found = self._groups.get(name)
        if found is None:
            try:
                ranks = tuple(dist.get_process_group_ranks(group))
            except (KeyError, ValueError, RuntimeError):
                return 0, ()  # a group that has been destroyed
            found = self._groups[name] = (self._name(json.dumps([name, ranks])), ranks)
        return found

    def _name(self, text: str) -> int:
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
        """The part of the file with this number; None once the disk is full."""
        while number >= len(self._chunks):
            with self._lock:
                if number >= len(self._chunks) and not self._grow():
                    return None
        return self._chunks[number]

    def _grow(self) -> bool:
        """One chunk more. Its bytes are allocated now: on a full disk a write to a mapped page that
        has none would end the process by SIGBUS."""
        start = len(self._chunks) * CHUNK
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._fd, start, CHUNK)
            else:
                os.lseek(self._fd, start, os.SEEK_SET)
                os.write(self._fd, bytes(CHUNK))
            self._chunks.append(mmap.mmap(self._fd, CHUNK, offset=start))
        except OSError:
            self._on = False
            with contextlib.suppress(OSError):
                os.write(self._names_fd, LOST + b"\n")
            return False
        return True


def close(slots: Slots, state: int) -> None:
    """Note that these calls have come to their end."""
    for chunk, at in slots:
        TIME.pack_into(chunk, at + RETURNED, time.monotonic())
        chunk[at + STATE] = state


def _unwrapped(function: Callable) -> Callable:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function
