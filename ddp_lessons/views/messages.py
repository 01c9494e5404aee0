"""Which rank sent how many bytes to which, and in which order: from the calls of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ddp_lessons.meetings import meetings
from ddp_lessons.run import Call, Run

SENDS, RECEIVES = ("send", "isend"), ("recv", "irecv")
Turn = tuple[int, int]  # (rank, how many turns it had before)


@dataclass(frozen=True)
class Message:
    """One tensor from one rank to another. `step` counts from 0: a rank does one thing after the
    other, so this message had to wait until both of its ends were free."""

    step: int
    sender: int
    receiver: int
    bytes: int

    @property
    def link(self) -> tuple[int, int]:
        return self.sender, self.receiver


def messages(run: Run) -> list[Message]:
    """Every tensor that send, isend, recv and irecv moved, by step, then by link.

    What a rank had under way at the same time is one turn of that rank; its next turn comes a step
    later than the last message of this one. Raises ValueError if a send or recv did not return or
    has no other side.
    """
    turns = {
        (call.rank, call.seq): (rank.rank, number)
        for rank in run
        for number, calls in enumerate(turns_of(rank.calls))
        for call in calls
    }
    pairs = [m.calls for m in meetings(run) if m.calls[0].op in SENDS + RECEIVES]
    if any(len(pair) < 2 for pair in pairs):
        raise ValueError("a send or recv of this run has no other side")
    ends = [tuple(turns[call.rank, call.seq] for call in pair) for pair in pairs]
    found = []
    for pair, step in zip(pairs, _steps(ends), strict=True):
        send, receive = sorted(pair, key=lambda call: call.op in RECEIVES)
        found.append(Message(step, send.rank, receive.rank, send.bytes))
    return sorted(found, key=lambda message: (message.step, message.link))


def turns_of(calls: Sequence[Call]) -> list[list[Call]]:
    """The sends and receives of one rank, those together that were under way at the same time."""
    found: list[list[Call]] = []
    until = 0.0
    for call in calls:
        if call.op not in SENDS + RECEIVES:
            continue
        if call.end is None:
            raise ValueError(f"{call!r} did not return")
        if not found or call.called >= until:
            found.append([])
        found[-1].append(call)
        until = max(until, call.end)
    return found


def sent(run: Run) -> list[int]:
    """The bytes that each rank sent by send and isend, in rank order."""
    return [sum(call.bytes for call in rank.calls if call.op in SENDS) for rank in run]


def _steps(ends: Sequence[tuple[Turn, Turn]]) -> list[int]:
    """The step of each message between two turns: the first in which both can take place."""
    of_turn: dict[Turn, list[int]] = {}
    for number, pair in enumerate(ends):
        for turn in pair:
            of_turn.setdefault(turn, []).append(number)
    starts = {turn: 0 for turn in of_turn if turn[1] == 0}
    steps: dict[int, int] = {}
    while len(steps) < len(ends):
        known = len(steps)
        for number, (one, other) in enumerate(ends):
            if number not in steps and one in starts and other in starts:
                steps[number] = max(starts[one], starts[other])
        for (rank, turn), numbers in of_turn.items():
            if all(number in steps for number in numbers):
                starts[rank, turn + 1] = 1 + max(steps[number] for number in numbers)
        if len(steps) == known:
            raise ValueError("these sends and receives wait for each other in a circle")
    return [steps[number] for number in range(len(ends))]
