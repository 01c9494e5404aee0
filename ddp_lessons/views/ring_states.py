"""What each rank held of each chunk after each step of a ring, and whose numbers were in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ddp_lessons.run import Run
from ddp_lessons.views.messages import messages


@dataclass(frozen=True)
class Chunk:
    """What one rank holds of one chunk: the numbers, the ranks they came from, whether it has
    changed in this step, and whether the rank has passed it on already."""

    numbers: tuple[float, ...]
    origins: frozenset[int]
    new: bool = False
    gone: bool = False


@dataclass(frozen=True)
class Move:
    """In one step, `chunk` goes from one rank to another."""

    sender: int
    receiver: int
    chunk: int


State = tuple[tuple[Chunk, ...], ...]  # rank -> chunk


def replayed(run: Run) -> tuple[list[State], list[list[Move]]]:
    """The state at the start and after each step, and what moved in each step."""
    starts = [_records(rank.records, "start") for rank in run]
    steps = [_records(rank.records, "step") for rank in run]
    sends = messages(run)
    count = 1 + max((message.step for message in sends), default=-1)
    if any(len(found) != 1 for found in starts) or any(len(found) != count for found in steps):
        raise ValueError(f'every rank needs one record "start" and {count} named "step"')
    state = tuple(
        tuple(Chunk(tuple(numbers), frozenset([rank])) for numbers in start[0]["chunks"])
        for rank, start in enumerate(starts)
    )
    first, states, moves = state, [state], []
    for step in range(count):
        moves.append(
            [
                Move(m.sender, m.receiver, steps[m.receiver][step]["chunk"])
                for m in sends
                if m.step == step
            ]
        )
        recorded = [found[step]["chunks"] for found in steps]
        state = _after(state, moves[-1], recorded)
        _check(first, state, step)
        states.append(state)
    return states, moves


def _records(records: Sequence[Any], name: str) -> list[Any]:
    return [record.values for record in records if record.name == name]


def _after(state: State, moves: Sequence[Move], recorded: Sequence[Any]) -> State:
    came = {(move.receiver, move.chunk): move.sender for move in moves}
    went = {(move.sender, move.chunk) for move in moves}
    return tuple(
        tuple(
            Chunk(
                tuple(recorded[rank][number]),
                chunk.origins | state[came[rank, number]][number].origins
                if (rank, number) in came
                else chunk.origins,
                (rank, number) in came,
                chunk.gone or (rank, number) in went,
            )
            for number, chunk in enumerate(chunks)
        )
        for rank, chunks in enumerate(state)
    )


def _check(first: State, state: State, step: int) -> None:
    """The colours are deduced from the sends, the numbers were recorded: they must agree."""
    for rank, chunks in enumerate(state):
        for number, chunk in enumerate(chunks):
            given = [first[origin][number].numbers for origin in chunk.origins]
            sums = [sum(each) for each in zip(*given, strict=True)]
            if not all(
                math.isclose(a, b, rel_tol=1e-5) for a, b in zip(sums, chunk.numbers, strict=True)
            ):
                raise ValueError(
                    f"step {step + 1}: chunk {number} of rank {rank} is not the sum of what the "
                    "sends brought there"
                )


def complete(state: State) -> dict[int, list[int]]:
    """The chunks that hold the numbers of all ranks, by the rank that holds them."""
    return {
        rank: [number for number, chunk in enumerate(chunks) if len(chunk.origins) == len(state)]
        for rank, chunks in enumerate(state)
    }
