"""What is no fault of an answer's takes nothing of its time, and is not held against it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddp_lessons.checks import exercise, starts
from ddp_lessons.checks.grade import LIMIT, START, grade
from ddp_lessons.launcher import launch

KEY = "04_collectives/all_gather"
RIGHT = Path(__file__).resolve().parents[1] / "answers" / KEY / "right_loop.py"
CASE = {"shape": [2], "seed": 0, "dtype": "int64", "late": False, "times": 1}


def test_a_case_with_a_limit_of_its_own_gets_all_of_it_and_takes_nothing_from_others(monkeypatch):
    limits = []

    def noted(*args, timeout: float = START, **kwargs):
        limits.extend([timeout] if timeout != START else [])  # that one is not the answer's
        return launch(*args, **kwargs)

    task = exercise.find(KEY)
    cases = [exercise.Case("1 rank", 1, CASE, timeout=99), exercise.Case("1 rank", 1, CASE)]
    monkeypatch.setattr(task, "cases", lambda seed: [*cases[:1] * 3, *cases[1:]])
    monkeypatch.setattr(task, "timeout", 99)
    monkeypatch.setattr("ddp_lessons.checks.grade.launch", noted)
    assert grade(KEY, RIGHT).passed
    assert limits[:4] == [99, 99, 99, LIMIT]


def test_ranks_that_never_came_to_the_answer_are_blamed_on_the_computer(monkeypatch):
    monkeypatch.setattr(exercise.find(KEY), "timeout", 0.001)
    assert grade(KEY, RIGHT).passed  # once more, with time
    monkeypatch.setattr("ddp_lessons.checks.grade.START", 0.001)
    verdict = grade(KEY, RIGHT)
    assert verdict.mistake == "busy", repr(verdict)
    assert not any(held for _, held in verdict.requirements)


def test_starts_that_take_too_long_are_no_verdict(monkeypatch):
    monkeypatch.setattr(starts, "LIMIT", 0.001)
    with pytest.raises(RuntimeError, match="this computer is busy"):
        starts.measured.__wrapped__()
