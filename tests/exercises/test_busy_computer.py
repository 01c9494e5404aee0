"""On a computer that is too slow, an answer is not blamed for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddp_lessons.checks import exercise, starts
from ddp_lessons.checks.grade import grade
from ddp_lessons.launcher import launch

KEY = "04_collectives/all_gather"
RIGHT = Path(__file__).resolve().parents[1] / "answers" / KEY / "right_loop.py"


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> list[float]:
    """The limits of all launches; in the first few of them no rank has the time to come to its
    group."""
    limits = []

    def late(*args, timeout: float, **kwargs):
        limits.append(timeout)
        return launch(*args, timeout=0.001 if len(limits) <= request.param else timeout, **kwargs)

    monkeypatch.setattr("ddp_lessons.checks.grade.launch", late)
    return limits


@pytest.mark.parametrize("slow", [1], indirect=True)
def test_an_answer_gets_a_second_first_launch(slow: list[float]):
    assert grade(KEY, RIGHT).passed


@pytest.mark.parametrize("slow", [99], indirect=True)
def test_an_answer_that_no_rank_came_to_is_not_judged(slow: list[float]):
    verdict = grade(KEY, RIGHT)
    assert verdict.mistake == "not_ready"
    assert all(held is None for _, held in verdict.requirements)
    assert len(slow) == 2


@pytest.mark.parametrize("slow", [0], indirect=True)
def test_a_case_with_a_limit_of_its_own_gets_all_of_it(
    slow: list[float], monkeypatch: pytest.MonkeyPatch
):
    task = exercise.find(KEY)
    case = exercise.Case("1 rank", 1, {"shape": [2], "seed": 0}, timeout=33)
    monkeypatch.setattr(task, "cases", lambda seed: [case])
    monkeypatch.setattr("ddp_lessons.checks.grade.LIMIT", 0)
    assert grade(KEY, RIGHT).passed
    assert slow == [33, 33]


def test_starts_that_take_too_long_are_no_verdict(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(starts, "LIMIT", 0.001)
    with pytest.raises(RuntimeError, match="this computer is busy"):
        starts.measured.__wrapped__()
