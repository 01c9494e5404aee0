"""What is said to bring calls together that do not fit, by what differs and on which lines."""

from __future__ import annotations

import pytest

from ddp_lessons.mismatch import ASTRAY, CAUSES, cause
from ddp_lessons.run import Call, Meeting


def meeting(differs: str, *places: tuple[str, int], op: str = "all_reduce") -> Meeting:
    group = tuple(range(len(places)))
    calls = [Call(rank, 0, op, group, 0, *place, 1.0) for rank, place in enumerate(places)]
    return Meeting(tuple(calls), differs=differs)


@pytest.mark.parametrize("kind", ["shape", "dtype", "reduce op", "length"])
def test_calls_of_two_places_are_perhaps_not_meant_for_each_other(kind: str):
    usual = CAUSES[kind]
    assert cause(meeting(kind, ("a.py", 3), ("a.py", 3))) == usual
    for other in (("a.py", 4), ("b.py", 3)):
        told = cause(meeting(kind, ("a.py", 3), other))
        assert told.startswith(ASTRAY)
        assert told.endswith(usual[1:])


@pytest.mark.parametrize("kind", ["root", "detail", "op"])
def test_where_branches_differ_on_purpose_lines_say_nothing(kind: str):
    assert cause(meeting(kind, ("a.py", 3), ("a.py", 4))) == CAUSES[kind]


def test_the_two_sides_of_a_pair_stand_on_two_lines_anyway():
    assert cause(meeting("dtype", ("a.py", 3), ("a.py", 4), op="send")) == CAUSES["pair"]
