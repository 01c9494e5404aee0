"""What the ranks of a ring would hold after each step, by the rules that their code follows.

An answer whose chunks are, after every step and on every rank, those of a wrong rule follows that
rule: so a diagnosis is a comparison and no guess.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

State = list[list[list[float]]]  # the numbers, by rank and chunk
Rule = Callable[[int, int], int]  # the number of a chunk, by rank and step; taken modulo the ranks


@dataclass(frozen=True)
class Rules:
    """Which chunk a rank sends in a step, for which chunk it takes what comes, and what it does
    with that: copy, add or drop."""

    goes: Rule
    comes: Rule
    how: str = "copy"


RIGHT = Rules(lambda r, s: r - s + 1, lambda r, s: r - s)

# By the name of the mistake in 05_ring_all_reduce.py.
WRONG: Sequence[tuple[str, Rules]] = (
    ("not_kept", Rules(RIGHT.goes, RIGHT.comes, "drop")),
    ("added", Rules(RIGHT.goes, RIGHT.comes, "add")),
    ("first_half_again", Rules(lambda r, s: r - s, lambda r, s: r - s - 1, "add")),
    ("off_by_one", Rules(lambda r, s: r - s, lambda r, s: r - s - 1)),
    ("off_by_one", Rules(lambda r, s: r - s + 2, lambda r, s: r - s + 1)),
    ("off_by_one", Rules(lambda r, s: r - s, lambda r, s: r - s + 1)),
    ("wrong_place", Rules(RIGHT.goes, RIGHT.goes)),
    ("wrong_place", Rules(lambda r, s: r, lambda r, s: r)),
    ("own_again", Rules(lambda r, s: r, RIGHT.comes)),
    ("own_again", Rules(lambda r, s: r, lambda r, s: r - 1)),
    ("counts_up", Rules(lambda r, s: r + s - 1, lambda r, s: r + s)),
    ("counts_up", Rules(lambda r, s: r + s - 1, RIGHT.comes)),
)


def simulated(start: State, rules: Rules) -> list[State]:
    """The state after each step. Each rank sends to the next one."""
    n, state, states = len(start), start, []
    for step in range(1, n):
        after = [list(chunks) for chunks in state]
        for rank in range(n):
            left, place = (rank - 1) % n, rules.comes(rank, step) % n
            parcel, old = state[left][rules.goes(left, step) % n], state[rank][place]
            if rules.how == "copy":
                after[rank][place] = parcel
            elif rules.how == "add":
                after[rank][place] = [a + b for a, b in zip(old, parcel, strict=False)]
        state = after
        states.append(state)
    return states


def by_rank(states: Sequence[State]) -> list[State]:
    """What each rank held after each step."""
    return [list(those) for those in zip(*states, strict=True)]
