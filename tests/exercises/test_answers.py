"""Every right answer in the bank passes, every wrong one fails with its own diagnosis."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import bank
import pytest

from ddp_lessons.checks import exercise
from ddp_lessons.checks.grade import grade
from ddp_lessons.checks.verdict import Verdict

KEYS = exercise.keys()
MOST_RIGHT = 5  # answers of each exercise that `make test` tries
AT_ONCE = 3
Judge = Callable[[bank.Answer, int], Verdict]


def every(right: bool) -> pytest.MarkDecorator:
    """All right answers or all wrong ones. Some of them, and one for each diagnosis, are tried
    always, the others by `make test-all`."""
    params, seen = [], Counter()
    for answer in bank.answers():
        if answer.right == right:
            kind = (answer.key, answer.diagnosis)
            seen[kind] += 1
            slow = seen[kind] > (MOST_RIGHT if right else 1)
            marks = [pytest.mark.slow] if slow else []
            params.append(pytest.param(answer, id=answer.name, marks=marks))
    return pytest.mark.parametrize("answer", params)


@pytest.fixture(scope="session")
def judge(request: pytest.FixtureRequest) -> Judge:
    """grade(). Most of a check is waiting for processes: all answers that were asked for are judged
    when the first one is, a few at a time."""
    asked = [
        (params["answer"], params.get("seed", 0))
        for item in request.session.items
        if (params := getattr(getattr(item, "callspec", None), "params", {}))
        and isinstance(params.get("answer"), bank.Answer)
    ]
    # The longest ones first.
    asked.sort(key=lambda one: not several_machines(one[0].key))

    @functools.cache
    def together() -> dict[tuple[bank.Answer, int], Future[Verdict]]:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return {one: pool.submit(grade, one[0].key, one[0].path, one[1]) for one in asked}

    return lambda answer, seed: together()[answer, seed].result()


@functools.cache
def several_machines(key: str) -> bool:
    return any(case.nnodes > 1 for case in exercise.find(key).cases(0))


@every(right=True)
def test_a_right_answer_passes(answer: bank.Answer, judge: Judge):
    verdict = judge(answer, 0)
    assert verdict.passed, repr(verdict)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
@every(right=True)
def test_a_right_answer_passes_with_other_inputs(answer: bank.Answer, seed: int, judge: Judge):
    verdict = judge(answer, seed)
    assert verdict.passed, repr(verdict)


@every(right=False)
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
