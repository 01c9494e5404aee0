"""Ledgers of a few ranks, written in one process, for tests of what is made of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest
import torch.distributed as dist

from ddp_lessons import agreement, calls, ledger, operations
from ddp_lessons.agreement import Book
from ddp_lessons.calls import Calls

MEMBERS = (0, 1)


class Ranks:
    """`ranks[0].all_reduce(x)` makes a call: the wrappers are the real ones, around functions that
    do nothing but have torch's own arguments."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, members=MEMBERS):
        def group(self: ledger.Ledger, given: object) -> tuple[int, tuple[int, ...]]:
            name, ranks = given or ("0", members)
            return self._file.name(f'["{name}", {list(ranks)}]'), tuple(ranks)

        monkeypatch.setattr(ledger.Ledger, "_group", group)
        self._folders = {rank: folder / str(rank) for rank in members}
        for one in self._folders.values():
            one.mkdir()
        self._rank = {rank: Rank(ledger.Ledger(one, rank)) for rank, one in self._folders.items()}

    def __getitem__(self, rank: int) -> Rank:
        return self._rank[rank]

    def calls(self, rank: int) -> Calls:
        return calls.read(rank, self._folders[rank], Path(__file__), "test.py")

    def book(self) -> Book:
        return agreement.book(map(self.calls, self._folders))


class Rank:
    """`refuse.all_reduce(x)` makes a call that raises TypeError."""

    def __init__(self, made: ledger.Ledger, refuses: bool = False):
        self._ledger, self._refuses = made, refuses

    @property
    def refuse(self) -> Rank:
        return Rank(self._ledger, refuses=True)

    def __getattr__(self, name: str) -> Callable:
        real = getattr(dist, name)

        @functools.wraps(real)
        def nothing(*args: object, **kwargs: object) -> None:
            if self._refuses:
                raise TypeError

        return self._ledger.wrap(nothing, operations.OPERATIONS[name])
