"""Every communication call that a rank's script makes, recorded while it is made.

`start(folder)` puts a wrapper around each public communication function of torch.distributed, for
this process. What torch itself calls, inside DDP say, is not recorded. The parent process reads the
same file, also while the rank runs or after it has died: see calls.py.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import sys
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from ddp_lessons import joining, ledger_file, places
from ddp_lessons.ledger_file import (
    ANYBODY,
    ASYNC,
    BATCHED,
    CLOSED,
    EMPTY,
    RAISED,
    REFUSED,
    UNKNOWN,
    LedgerFile,
    Slot,
)
from ddp_lessons.operations import CODES, MAKES_GROUPS, NOBODY, OPERATIONS, Operation

SWITCH = "DDP_LESSONS_LEDGER"  # "0" in a rank's environment: no ledger
REMEMBERED = 1000  # calls whose record is kept ready, for a function


def start(folder: Path, rank: int) -> None:
    """Record this process's communication calls, as that rank's, in `folder` from now on."""
    if os.environ.get(SWITCH) == "0":
        return
    import torch.distributed as dist

    ledger = Ledger(folder, rank)
    for operation in OPERATIONS.values():
        inner = getattr(dist.distributed_c10d, operation.name, None)  # some are new in 2.13
        if inner is not None:
            wrapper = ledger.wrap(inner, operation)
            setattr(dist.distributed_c10d, operation.name, wrapper)
            if hasattr(dist, operation.name):
                setattr(dist, operation.name, wrapper)


class Ledger:
    """What this process knows of its calls: the file, and how many it has made in each group."""

    def __init__(self, folder: Path, rank: int):
        import torch
        import torch.distributed as dist

        self._dist = dist
        self._is_compiling = torch.compiler.is_compiling
        self._world = dist.distributed_c10d._world
        self._file = LedgerFile(folder)
        self._files: dict[str, int] = {}  # 0: a file whose calls are not recorded
        self._counts: dict[tuple, itertools.count] = {}
        # By the object: names are used again after destroy_process_group.
        self._groups: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
        self._works: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
        self._rank = rank
        self._waits_watched = False
        self._on = True
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._stop)  # a child is no rank

    def _stop(self) -> None:
        self._on = False

    def wrap(self, inner: Callable, operation: Operation) -> Callable:
        """`inner`, recording its calls from outside torch."""
        code = _unwrapped(inner).__code__
        names = code.co_varnames[: code.co_argcount]
        is_compiling = self._is_compiling

        def call(frame: FrameType, args: tuple, kwargs: dict, key: tuple | None) -> Any:
            file = self._files.get(frame.f_code.co_filename)
            if file is None:
                file = self._know_file(frame)
            if not file or not self._on:
                return inner(*args, **kwargs)
            given = dict(zip(names, args, strict=False), **kwargs)
            if operation.name == "batch_isend_irecv":
                return self._finish(inner, args, kwargs, self._open_batch(given, file, frame))
            record, counter = self._record(operation, given, file, frame)
            if key and record and _reusable(given) and len(ready) < REMEMBERED:
                ready[key] = record, counter, joining.times(), frame.f_code
            return self._finish(inner, args, kwargs, self._begin(record, counter))

        if not operation.plain:

            @functools.wraps(inner)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                if is_compiling():
                    return inner(*args, **kwargs)
                return call(sys._getframe(1), args, kwargs, None)

            return wrapper

        # Records of calls like ones that were made before: a training loop makes the same few.
        # Between two of them the processor's caches have been used for other things, so that each
        # line here costs several times what a tight loop would show.
        ready: dict[tuple, tuple] = {}
        times = joining.times
        begin, monotonic = self._file.begin, time.monotonic
        returned, state = ledger_file.RETURNED, ledger_file.STATE
        write = ledger_file.TIME.pack_into

        @functools.wraps(inner)
        def quick(*args: Any, **kwargs: Any) -> Any:
            if is_compiling():  # torch.compile reads this as true, and goes on to the function
                return inner(*args, **kwargs)
            frame = sys._getframe(1)
            try:
                x = args[0]
                key = id(frame.f_code), frame.f_lasti, x.shape, x.dtype, args[1:]
                if kwargs:
                    key += tuple(kwargs.items())
                known = ready.get(key)
            except Exception:  # noqa: BLE001  whatever a tensor of another kind may raise
                key = known = None
            if known is None or known[2] != times() or not self._on:
                return call(frame, args, kwargs, key)
            slot = begin(known[0], next(known[1]))
            try:
                result = inner(*args, **kwargs)
            except BaseException as error:
                self._raised(slot, error)
                raise
            if slot is None:
                self._on = False
                return result
            chunk, at = slot
            write(chunk, at + returned, monotonic())
            chunk[at + state] = CLOSED
            if result is not None:
                self._remember(result, (slot,))
            return result

        return quick

    def _finish(self, inner: Callable, args: tuple, kwargs: dict, slots: tuple[Slot, ...]) -> Any:
        """Make the call itself, and note when it returned or that it raised."""
        try:
            result = inner(*args, **kwargs)
        except BaseException as error:
            for slot in slots:
                self._raised(slot, error)
            raise
        for slot in slots:
            self._close(slot, CLOSED)
        if result is not None and slots:
            self._remember(result, slots)
        return result

    def _raised(self, slot: Slot | None, error: BaseException) -> None:
        """Note that a call raised. Where torch has refused its arguments, it took part in nothing,
        and the next call stands in its place."""
        self._close(slot, REFUSED if isinstance(error, TypeError | ValueError) else RAISED)

    def _close(self, slot: Slot | None, state: int) -> None:
        """Note that a call has come to its end."""
        if slot is not None:
            chunk, at = slot
            ledger_file.TIME.pack_into(chunk, at + ledger_file.RETURNED, time.monotonic())
            chunk[at + ledger_file.STATE] = state

    def _watch_waits(self) -> None:
        """Record from now on when `wait` is called on a Work that a recorded call returned. Not
        before there is one: torch's own synchronous calls come this way too."""
        if self._waits_watched:
            return
        self._waits_watched = True
        works, inner = self._works, self._dist.Work.wait

        @functools.wraps(inner)
        def wait(work: Any, *args: Any, **kwargs: Any) -> Any:
            slots = works.pop(work, None) if works else None
            if not slots or not self._on:
                return inner(work, *args, **kwargs)
            frame = places.readers_frame(sys._getframe(1))
            file = self._file.name(frame.f_code.co_filename)
            for chunk, at in slots:
                ledger_file.LINE.pack_into(chunk, at + ledger_file.WAIT_LINE, frame.f_lineno)
                ledger_file.NUMBER.pack_into(chunk, at + ledger_file.WAIT_FILE, file)
                ledger_file.TIME.pack_into(chunk, at + ledger_file.WAITING, time.monotonic())
            try:
                return inner(work, *args, **kwargs)
            finally:
                for chunk, at in slots:
                    ledger_file.TIME.pack_into(chunk, at + ledger_file.DONE, time.monotonic())

        self._dist.Work.wait = wait

    def _know_file(self, frame: FrameType) -> int:
        """The number of the caller's file; 0 for one of torch's own."""
        path = frame.f_code.co_filename
        if places.is_torchs(path):
            number = 0
        elif places.is_readers(path):
            number = self._file.name(path)
        else:
            # An installed package, or a thread's first frame: the reader's line is further out, in
            # another file each time.
            return self._file.name(places.readers_frame(frame).f_code.co_filename)
        self._files[path] = number
        return number

    def _open_batch(
        self, given: Mapping[str, Any], file: int, frame: FrameType
    ) -> tuple[Slot, ...]:
        slots = []
        for one in given.get("p2p_op_list") or ():
            name = getattr(getattr(one, "op", None), "__name__", "")
            if name in ("isend", "irecv"):
                facts = {"tensor": one.tensor, "group": one.group, "tag": one.tag}
                facts |= {"src": one.peer, "dst": one.peer}
                slots += self._begin(*self._record(OPERATIONS[name], facts, file, frame, BATCHED))
        return tuple(slots)

    def _begin(self, record: bytes | None, counter: itertools.count | None) -> tuple[Slot, ...]:
        if record is None:
            return ()
        slot = self._file.begin(record, next(counter))
        self._on = slot is not None
        return () if slot is None else (slot,)

    def _record(self, *given: Any) -> tuple[bytes | None, itertools.count | None]:
        """The record of a call that begins, without HEAD, and what counts calls like it. None for a
        call that torch will refuse or that does nothing: this rank has no such process group."""
        try:
            return self._told(*given)
        except Exception:  # noqa: BLE001  the reader's call must not fail because of the ledger
            return None, None

    def _told(
        self,
        operation: Operation,
        given: Mapping[str, Any],
        file: int,
        frame: FrameType,
        flags: int = 0,
    ) -> tuple[bytes | None, itertools.count | None]:
        group, ranks = self._group(given.get("group") or given.get("parent_pg"))
        if not group or operation.local(given):
            return None, None
        try:
            facts = operation.facts(given, ranks)
        except Exception:  # noqa: BLE001  whatever a tensor of another kind may raise
            facts = operation.nothing  # if the arguments are wrong, torch says so better
        if not places.is_readers(frame.f_code.co_filename):
            frame = places.readers_frame(frame)
        tag = given.get("tag") or 0
        # Groups are made in an order of their own: nobody waits in it for other calls.
        side = "groups" if operation.name in MAKES_GROUPS else None
        if operation.side:
            side = operation.side, facts.peer, tag
            if facts.peer == NOBODY:
                flags |= ANYBODY
        if given.get("async_op") or operation.name in ("isend", "irecv"):
            flags |= ASYNC
        counter = self._counts.get((group, side))
        if counter is None:
            counter = self._counts.setdefault((group, side), itertools.count())
        detail = self._file.name(facts.detail) if facts.detail else 0
        if facts.detail and not detail:
            flags |= UNKNOWN
        record = ledger_file.RECORD.pack(
            *(0.0, 0, 0, 0.0, 0.0, 0.0),
            *(facts.bytes, frame.f_lineno, 0, facts.peer, tag, group, file, 0, detail),
            *(CODES[operation.name], facts.reduce_op, facts.dtype, len(facts.shape), flags, EMPTY),
            *(*facts.shape, 0, 0, 0, 0, 0, 0)[:6],
        )
        return record[ledger_file.HEAD :], counter

    def _remember(self, result: Any, slots: tuple[Slot, ...]) -> None:
        """Know a returned Work again when it is waited for; and who a recv has received from."""
        if isinstance(result, int):
            chunk, at = slots[0]
            ledger_file.SIGNED.pack_into(chunk, at + ledger_file.PEER, result)
            return
        works = result if isinstance(result, list) else [result]
        if not all(isinstance(work, self._dist.Work) for work in works):
            return
        self._watch_waits()
        # NCCL makes one Work of a whole batch.
        each = [(slot,) for slot in slots] if len(works) == len(slots) else [slots] * len(works)
        self._works.update(zip(works, each, strict=True))

    def _group(self, group: Any) -> tuple[int, tuple[int, ...]]:
        """The number of a process group and its ranks; 0 if this rank has no such group."""
        group = self._dist.group.WORLD if group is None else group
        name = getattr(group, "group_name", None)
        if name is None:
            return 0, ()
        found = self._groups.get(group)
        if found is None and self._dist.get_rank() != self._rank:
            self._on = False  # the script has numbered the ranks anew: nothing would fit
            self._file.give_up()
            return 0, ()
        if found is None:
            try:
                ranks = tuple(self._dist.get_process_group_ranks(group))
            except (KeyError, ValueError, RuntimeError):
                return 0, ()  # a group that has been destroyed
            joined = joining.times()
            name += f" of join {joined}" if joined > 1 else ""
            number = self._file.name(json.dumps([name, ranks]))
            found = self._groups[group] = number, ranks
        return found


def _reusable(given: Mapping[str, Any]) -> bool:
    """Whether equal arguments will mean the same again: no process group among them, which may be
    another one later, and nothing that can change."""
    simple = int | bool | str | None
    return all(
        isinstance(value, simple) or type(value).__name__ == "RedOpType"
        for name, value in given.items()
        if name != "tensor"
    )


def _unwrapped(function: Callable) -> Callable:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function
