"""compare(): when a guess and a measurement agree, and what is printed."""

from __future__ import annotations

import pytest

from ddp_lessons import compare


@pytest.mark.parametrize(
    ("guess", "measured"),
    [
        (3, 3),
        (3, 3.0),
        (3.0, [3.0, 3.0]),
        ([1, 2], [1.0, 2.0]),
        ((1, 2), [1, 2]),
        (100, 100.4),
        ("Gloo ", "gloo"),
        ("3", 3),
        (" true", True),
        ("1.5", [1.5, 1.5]),
        (True, True),
        (0, 0.0),
        ([[1, 2], 3], [[1, 2], 3]),
    ],
)
def test_they_agree(guess, measured):
    assert compare(guess, measured).agrees is True
    assert repr(compare(guess, measured)).startswith("yes · ")


@pytest.mark.parametrize(
    ("guess", "measured"),
    [
        (3, 4),
        (100, 100.6),
        (3, [3, 4]),
        (3, []),
        ([1, 2], [1, 2, 3]),
        ([1, 2], 1),
        ("3", 4),
        ("three", 3),
        ("None", 0),
        ("False", True),
        (0, 0.001),
        ([1, 2], [2, 1]),
    ],
)
def test_they_do_not(guess, measured):
    assert compare(guess, measured).agrees is False
    assert repr(compare(guess, measured)).startswith("not this time · ")


def test_without_a_guess_nothing_is_judged():
    result = compare(None, [1.0, 2.0])
    assert result.agrees is None
    assert repr(result) == "no guess · measured [1.0, 2.0]"


def test_both_sides_are_told():
    assert repr(compare(2, 3.0)) == "not this time · guess 2 · measured 3.0"


def test_many_equal_entries_are_counted():
    assert repr(compare(None, [2080.0] * 64)) == "no guess · measured 2080.0 on all 64 ranks"
