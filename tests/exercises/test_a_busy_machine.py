"""A machine that cannot start the ranks in time is no mistake of the answer."""

from __future__ import annotations

import bank

from ddp_lessons.checks import exercise
from ddp_lessons.checks.grade import grade


def test_ranks_that_never_came_to_the_answer_are_blamed_on_the_machine(monkeypatch):
    answer = next(one for one in bank.answers() if one.right)
    monkeypatch.setattr(type(exercise.find(answer.key)), "timeout", 0.001)
    verdict = grade(answer.key, answer.path)
    assert verdict.mistake == "slow", repr(verdict)
    assert not any(held for _, held in verdict.requirements)
