"""Every right answer in the bank passes, every wrong one fails with its own diagnosis."""

from __future__ import annotations

import bank
import pytest

from ddp_lessons.checks import exercise
from ddp_lessons.checks.grade import grade

RIGHT = [answer for answer in bank.answers() if answer.right]
WRONG = [answer for answer in bank.answers() if not answer.right]
KEYS = exercise.keys()


def every(answers: list[bank.Answer]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("answer", [pytest.param(one, id=one.name) for one in answers])


@every(RIGHT)
def test_a_right_answer_passes(answer: bank.Answer):
    verdict = grade(answer.key, answer.path)
    assert verdict.passed, repr(verdict)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
@every(RIGHT)
def test_a_right_answer_passes_with_other_inputs(answer: bank.Answer, seed: int):
    verdict = grade(answer.key, answer.path, seed)
    assert verdict.passed, repr(verdict)


@every(WRONG)
def test_a_wrong_answer_fails_with_its_diagnosis(answer: bank.Answer):
    verdict = grade(answer.key, answer.path)
    assert not verdict.passed
    assert verdict.mistake == answer.diagnosis, repr(verdict)
    assert verdict.usual


@pytest.mark.parametrize("key", KEYS)
def test_the_bank_is_full(key: str):
    found = bank.answers(key)
    wrong = [answer for answer in found if not answer.right]
    assert len(found) - len(wrong) >= 5
    assert len({answer.diagnosis for answer in wrong if answer.diagnosis}) >= 8


@pytest.mark.parametrize("key", KEYS)
def test_every_mistake_that_an_exercise_knows_is_in_the_bank(key: str):
    made = {answer.diagnosis for answer in bank.answers(key)}
    assert set(exercise.find(key).mistakes) <= made


def test_the_bank_answers_exercises_that_exist():
    assert {answer.key for answer in bank.answers()} == set(KEYS)
