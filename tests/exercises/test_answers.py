"""Every right answer in the bank passes, every wrong one fails with its own diagnosis."""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import bank
import pytest

from ddp_lessons.checks import exercise
from ddp_lessons.checks.grade import grade
from ddp_lessons.checks.verdict import Verdict

RIGHT = [answer for answer in bank.answers() if answer.right]
WRONG = [answer for answer in bank.answers() if not answer.right]
KEYS = exercise.keys()


def every(answers: list[bank.Answer]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("answer", [pytest.param(one, id=one.name) for one in answers])


AT_ONCE = 2
Judge = Callable[[bank.Answer, int], Verdict]


@pytest.fixture(scope="session")
def judge(request: pytest.FixtureRequest) -> Judge:
    """grade(). Answers on several machines take torchrun, seconds of which are waiting: all that
    were asked for are judged when the first one is, a few at a time."""
    asked = [
        (params["answer"], params.get("seed", 0))
        for item in request.session.items
        if "answer" in (params := getattr(getattr(item, "callspec", None), "params", {}))
        and several_machines(params["answer"].key)
    ]

    @functools.cache
    def together() -> dict[tuple[bank.Answer, int], Verdict]:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            made = pool.map(lambda one: grade(one[0].key, one[0].path, one[1]), asked)
            return dict(zip(asked, made, strict=True))

    def judge(answer: bank.Answer, seed: int) -> Verdict:
        if several_machines(answer.key):
            return together()[answer, seed]
        return grade(answer.key, answer.path, seed)

    return judge


def several_machines(key: str) -> bool:
    return any(case.nnodes > 1 for case in exercise.find(key).cases(0))


@every(RIGHT)
def test_a_right_answer_passes(answer: bank.Answer, judge: Judge):
    verdict = judge(answer, 0)
    assert verdict.passed, repr(verdict)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
@every(RIGHT)
def test_a_right_answer_passes_with_other_inputs(answer: bank.Answer, seed: int, judge: Judge):
    verdict = judge(answer, seed)
    assert verdict.passed, repr(verdict)


@every(WRONG)
def test_a_wrong_answer_fails_with_its_diagnosis(answer: bank.Answer, judge: Judge):
    verdict = judge(answer, 0)
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
