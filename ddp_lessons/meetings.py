"""Which calls met which, also those that fitted together: a pure function from a Run."""

from __future__ import annotations

from collections.abc import Iterator

from ddp_lessons.operations import MAKES_GROUPS, OPERATIONS
from ddp_lessons.run import Call, Meeting, Rank, Run


def meetings(run: Run) -> list[Meeting]:
    """All meetings, in the order in which the last member came.

    Collectives meet by their place in the group's order, sends and recvs by their place in the
    order of one pair and tag. A recv from any rank that has not returned meets nobody yet, and
    neither does a send or recv behind calls that the ledger has written over. `differs` is left
    empty: see `Run.mismatches`.
    """
    found: dict[tuple, tuple[tuple[int, ...], dict[int, Call]]] = {}
    for rank in run:
        for key, members, call in placed(rank):
            found.setdefault(key, (members, {}))[1][call.rank] = call
    made = [
        Meeting(
            tuple(came[rank] for rank in sorted(came)),
            tuple(member for member in members if member not in came),
        )
        for members, came in found.values()
    ]
    return sorted(made, key=lambda meeting: meeting.last)


def placed(rank: Rank) -> Iterator[tuple[tuple, tuple[int, ...], Call]]:
    """Each call of a rank with the key of its meeting, the same on all members, and these."""
    counts: dict[tuple, int] = {}
    whole = True
    for place, call in enumerate(rank.calls):
        whole = whole and call.seq == place
        group = (call.group_name, call.group)
        if OPERATIONS[call.op].side is None:
            makes = call.op in MAKES_GROUPS  # in an order of their own
            yield (group, makes, call.index), call.group, call
        elif whole and call.peer is not None:
            # Not by call.index, which counts the recvs from any rank apart.
            sends = "send" in call.op
            pair = (call.rank, call.peer) if sends else (call.peer, call.rank)
            stream = (group, *pair, call.tag)
            index = counts.get((stream, sends), 0)
            counts[stream, sends] = index + 1
            # To oneself both halves are calls of one rank, and nobody waits.
            if call.peer != call.rank:
                yield (stream, index), pair, call
