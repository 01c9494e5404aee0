"""Which rank sent how many bytes to which, and in which order: from the calls of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ddp_lessons.run import Call, Run

SENDS, RECEIVES = ("send", "isend"), ("recv", "irecv")

Key = tuple  # what a send and its recv have in common
Turn = tuple[int, int]  # (rank, how many turns it had before)


@dataclass(frozen=True)
class Message:
    """One tensor from one rank to another. `step` counts from 0: a rank does one thing at a time,
    so this message had to wait until both of its ends were free."""

    step: int
    sender: int
    receiver: int
    bytes: int

    @property
    def link(self) -> tuple[int, int]:
        return self.sender, self.receiver


def messages(run: Run) -> list[Message]:
    """Every tensor that send, isend, recv and irecv moved, by step, then by link.

    What one rank had under way at the same time is one turn of that rank; its next turn comes a
    step later than the last message of this one. Raises ValueError if a send and its recv did not
    both return.
    """
    ends: dict[Key, dict[str, tuple[Turn, Call]]] = {}
    turns: dict[Turn, list[Key]] = {}
    for rank in run:
        for number, calls in enumerate(turns_of(rank.calls)):
            for call in calls:
                side = "send" if call.op in SENDS else "recv"
                ends.setdefault(_key(call), {})[side] = ((rank.rank, number), call)
                turns.setdefault((rank.rank, number), []).append(_key(call))
    if any(len(found) < 2 for found in ends.values()):
        raise ValueError("a send or recv of this run has no other side")
    steps = _steps(turns, {k: (e["send"][0], e["recv"][0]) for k, e in ends.items()})
    found = [
        Message(steps[key], end["send"][1].rank, end["recv"][1].rank, end["send"][1].bytes)
        for key, end in ends.items()
    ]
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


def _key(call: Call) -> Key:
    """The same for a send and for the recv that it goes with: torch pairs them by their order."""
    pair = (call.rank, call.peer) if call.op in SENDS else (call.peer, call.rank)
    return (call.group_name, *pair, call.tag, call.index)


def _steps(turns: dict[Turn, list[Key]], ends: dict[Key, tuple[Turn, Turn]]) -> dict[Key, int]:
    """The step of each message: the later of its two turns, each a step after the turn before."""
    starts = dict.fromkeys((turn for turn in turns if turn[1] == 0), 0)
    steps: dict[Key, int] = {}
    while len(steps) < len(ends):
        known = len(steps)
        for key, (one, other) in ends.items():
            if key not in steps and one in starts and other in starts:
                steps[key] = max(starts[one], starts[other])
        for (rank, number), keys in turns.items():
            if (rank, number + 1) in turns and all(key in steps for key in keys):
                starts[rank, number + 1] = 1 + max(steps[key] for key in keys)
        if len(steps) == known:
            raise ValueError("these sends and receives wait for each other in a circle")
    return steps
