"""The all-reduces of lesson 05 give the exact sum, and send the bytes that the lesson says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ddp_lessons import launch
from ddp_lessons.run import Call, Run

SCRIPT = Path(__file__).with_name("ring_sizes.py")
SMALL, LARGE = range(41), 1_000_003


def tried(ranks: int, dtypes: str, sizes: Sequence[int]) -> Run:
    return launch(SCRIPT, ranks, args=[dtypes, ",".join(map(str, sizes))], timeout=120)


def sends(run: Run, rank: int) -> list[Call]:
    """What a rank has sent since the first barrier of the test's own script."""
    calls = run[rank].calls
    begin = [(call.file, call.op) for call in calls].index((run.script, "barrier"))
    return [call for call in calls[begin:] if call.op in ("send", "isend")]


def chunk(number: int, size: int, ranks: int) -> int:
    """The length of a chunk: the first size % ranks of them are longer by one."""
    return size // ranks + (number < size % ranks)


def expected(name: str, rank: int, ranks: int, size: int) -> list[tuple[int, int]]:
    """(to which rank, how many numbers) of each message that a rank must send, in order."""
    if ranks == 1:
        return []
    if name == "naive":
        return [(other, size) for other in range(1, ranks)] if rank == 0 else [(0, size)]
    right = (rank + 1) % ranks
    return [(right, chunk((rank - step) % ranks, size, ranks)) for step in range(1, ranks)]


def check(run: Run) -> None:
    """Every result is right on every rank, every message as long as it must be."""
    assert run.values("wrong") == [[]] * len(run)
    for rank, cases in enumerate(run.values("cases")):
        wanted = [
            (to, count * width)
            for name, size, width in cases
            for to, count in expected(name, rank, len(run), size)
        ]
        assert [(call.peer, call.bytes) for call in sends(run, rank)] == wanted


@pytest.mark.parametrize("ranks", range(1, 9))
def test_sums_and_messages_are_exact_for_small_tensors(ranks):
    check(tried(ranks, "int64", SMALL))


@pytest.mark.parametrize("ranks", [1, 3, 8])
def test_sums_and_messages_are_exact_in_each_type(ranks):
    check(tried(ranks, "float32,float64", [0, 1, ranks - 1, ranks, ranks + 1, 40]))


@pytest.mark.parametrize("ranks", [2, 7])
def test_sums_and_messages_are_exact_for_a_million_and_three_numbers(ranks):
    check(tried(ranks, "float32,int64", [LARGE]))


@pytest.mark.slow
@pytest.mark.parametrize("ranks", range(1, 9))
def test_sums_and_messages_are_exact_for_every_size_in_every_type(ranks):
    check(tried(ranks, "float32,float64,int64", [*SMALL, LARGE]))


@pytest.mark.parametrize("ranks", range(2, 9))
def test_both_ways_send_the_same_in_all_and_the_ring_half_as_much_in_a_half(ranks):
    for size in (0, 1, 7, 40, LARGE):
        naive, half = (
            [sum(n for _, n in expected(name, rank, ranks, size)) for rank in range(ranks)]
            for name in ("naive", "half")
        )
        assert sum(naive) == 2 * sum(half) == 2 * (ranks - 1) * size
        assert naive[0] == (ranks - 1) * size
        if size % ranks == 0:
            assert half == [(ranks - 1) * size // ranks] * ranks
