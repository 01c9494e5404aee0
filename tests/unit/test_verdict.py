"""A verdict as text and as HTML: the same facts, and nothing that an answer says becomes markup."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tags import parsed

from ddp_lessons import CheckError, Verdict
from ddp_lessons.views import html

PASSED = Verdict(
    "06_gradient_averaging/weighted",
    (("the gradient is the big batch's", True), ("x < y & z is unchanged", True)),
)
FAILED = replace(
    PASSED,
    requirements=(("the gradient is right", False), ("nothing is changed", None), ("all", True)),
    case="3 ranks, shards of 2, 1 and 0 <samples>",
    told=("rank 1 returned <b>[3.0]</b>,", "    should be [1.5] & no more"),
    mistake="sum",
    usual="3.0 is the sum; the mean is 1.5. Don't <i>add</i>.",
)
BARE = replace(FAILED, case="", told=(), usual="")


def words(text: str) -> list[str]:
    return text.split()


def test_a_verdict_that_passed_names_every_requirement():
    assert repr(PASSED) == (
        "06_gradient_averaging/weighted: passed\n"
        "  ok  the gradient is the big batch's\n"
        "  ok  x < y & z is unchanged"
    )


def test_a_verdict_that_failed_says_what_held_the_case_and_the_usual_cause():
    assert repr(FAILED) == (
        "06_gradient_averaging/weighted: not passed\n"
        "  no  the gradient is right\n"
        "  ?   nothing is changed (not known yet)\n"
        "  ok  all\n"
        "With 3 ranks, shards of 2, 1 and 0 <samples>:\n"
        "  rank 1 returned <b>[3.0]</b>,\n"
        "      should be [1.5] & no more\n"
        "3.0 is the sum; the mean is 1.5. Don't <i>add</i>."
    )


def test_nothing_has_passed_that_was_not_seen():
    assert PASSED.passed
    assert not replace(PASSED, requirements=()).passed
    assert not replace(PASSED, requirements=(("one", True), ("two", None))).passed


def test_the_error_is_the_verdict_and_shows_no_frames():
    error = CheckError(FAILED)
    assert isinstance(error, AssertionError)
    assert str(error) == repr(FAILED)
    assert error.verdict is FAILED
    (line,) = error._render_traceback_()
    assert line.endswith(repr(FAILED))


@pytest.mark.parametrize("verdict", [PASSED, FAILED, BARE], ids=["passed", "failed", "bare"])
def test_the_html_says_what_the_text_says(verdict: Verdict):
    seen = parsed(html.verdict(verdict)).text
    marks = {True: "✓ held", False: "✗ not held", None: "? not known yet"}
    head = f"{verdict.key}: {'passed' if verdict.passed else 'not passed'}"
    facts = [head, *(sentence for sentence, _ in verdict.requirements), *verdict.told]
    facts += [verdict.usual, f"With {verdict.case}:"] if verdict.case else []
    for fact in facts:
        assert " ".join(words(fact)) in " ".join(words(seen)), fact
    held = [mark for _, one in verdict.requirements if (mark := marks[one])]
    places = [seen.index(sentence) for sentence, _ in verdict.requirements]
    for place, mark in zip(places, held, strict=True):
        assert seen.index(mark, place) < min([p for p in places if p > place], default=len(seen))


def test_nothing_of_an_answers_becomes_markup():
    found = parsed(html.verdict(FAILED)).found
    kinds = {tag for tag, _ in found}
    assert kinds == {"style", "div", "table", "caption", "thead", "tbody", "tr", "th", "td"} | {
        *("pre", "p")
    }
    assert all("id" not in attributes for _, attributes in found)


def test_a_verdict_without_a_case_has_no_empty_boxes():
    kinds = {tag for tag, _ in parsed(html.verdict(BARE)).found}
    assert not kinds & {"pre", "p"}
