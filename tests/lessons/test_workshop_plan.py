"""The timetables of WORKSHOP.md are what the lessons' minutes give, and keep their own rules."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

import workshop
import workshop_plan
from ddp_lessons import course
from ddp_lessons.checks import exercise
from workshop_plan import BREAK, DAY, LONGEST, LUNCH, SHORTEST, Item, Part, Plan

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "WORKSHOP.md"
PARTS = workshop_plan.parts(ROOT)
PLANS = {days: workshop_plan.plan(PARTS, days) for days in (1, 2)}
both = pytest.mark.parametrize("plan", PLANS.values(), ids=["one day", "two days"])


def test_the_page_holds_the_timetables_that_the_minutes_give_today():
    text = PAGE.read_text(encoding="utf-8")
    assert text == workshop.planned(text, ROOT), "write them anew: make notebooks"


def test_a_lesson_that_takes_longer_makes_the_page_out_of_date(monkeypatch):
    longer = [
        replace(lesson, minutes=lesson.minutes + 10) if lesson.slug[:2] == "04" else lesson
        for lesson in course.LESSONS
    ]
    monkeypatch.setattr(course, "LESSONS", tuple(longer))
    text = PAGE.read_text(encoding="utf-8")
    assert text != workshop.planned(text, ROOT)


def test_every_exercise_of_the_course_is_read_with_its_own_minutes():
    told = [(item.lesson, item.own) for part in PARTS for item in part.exercises]
    keys = exercise.keys()
    assert sorted(told) == sorted((key[:2], exercise.find(key).minutes) for key in keys)


def test_checkpoints_end_lessons_03_06_and_09():
    assert [part.lesson.lesson for part in PARTS if part.checkpoint] == ["03", "06", "09"]


def test_the_minutes_are_those_of_the_course_checkpoints_among_them():
    both = [(p.lesson, p.checkpoint) for p in PARTS]
    told = [(lesson.lesson, lesson.own + (check.own if check else 0)) for lesson, check in both]
    assert told == [(lesson.slug[:2], lesson.minutes) for lesson in course.LESSONS]


@both
def test_a_lesson_comes_after_all_that_it_needs_and_before_its_exercises(plan: Plan):
    done: list[str] = []
    needs = {part.lesson.lesson: part.needs for part in PARTS}
    for item in plan.items:
        if item.kind == "lesson":
            assert set(needs[item.lesson]) <= set(done), item.title
            done.append(item.lesson)
        elif item.kind in ("exercise", "checkpoint"):
            assert done[-1] == item.lesson, item.title


@both
def test_each_thing_begins_when_the_one_before_has_ended(plan: Plan):
    for day in plan.days:
        assert day[0][0] == DAY[0]
        for (start, item), (following, _) in itertools.pairwise(day):
            assert start + item.minutes == following, item.title


@both
def test_the_days_end_on_time_with_one_lunch_each(plan: Plan):
    for day in plan.days:
        start, last = day[-1]
        assert start + last.minutes <= DAY[1]
        lunch = [(begin, item) for begin, item in day if item.kind == "lunch"]
        assert len(lunch) == 1 and lunch[0][1].minutes == LUNCH
        assert 11 * 60 + 45 <= lunch[0][0] <= 13 * 60 + 15


@both
def test_no_stretch_of_work_is_over_90_minutes_and_none_is_a_scrap(plan: Plan):
    assert LONGEST == 90
    for day in plan.days:
        run, stretches = 0, []
        for _, item in day:
            if item.kind in ("break", "lunch"):
                stretches, run = [*stretches, run], 0
            else:
                run += item.minutes
        assert all(SHORTEST <= minutes <= LONGEST for minutes in [*stretches, run])
        assert {item.minutes for _, item in day if item.kind == "break"} == {BREAK}


@both
def test_nothing_gets_less_time_than_its_page_states_and_a_vote_comes_on_top(plan: Plan):
    for item in plan.items:
        assert item.minutes >= item.own + (5 if item.kind == "lesson" else 0), item.title


@both
def test_what_is_not_in_the_plan_is_said_to_be_left_out(plan: Plan):
    whole = [item for part in PARTS for item in (part.lesson, *part.exercises)]
    there = [item for item in plan.items if item.kind in ("lesson", "exercise")]
    assert sorted(map(repr, [*there, *plan.left_out])) == sorted(map(repr, whole))
    apart = {item.lesson for item in plan.left_out if item.kind == "lesson"}
    text = workshop_plan.table(plan)
    for item in whole:
        assert item.title in text or (item.kind == "exercise" and item.lesson in apart), item.title


@both
def test_every_lesson_in_the_plan_has_one_of_its_exercises(plan: Plan):
    lessons = {item.lesson for item in plan.items if item.kind == "lesson"}
    practised = {item.lesson for item in plan.items if item.kind == "exercise"}
    assert practised == {p.lesson.lesson for p in PARTS if p.exercises} & lessons


def test_two_days_hold_every_lesson():
    lessons = [item.lesson for item in PLANS[2].items if item.kind == "lesson"]
    assert lessons == [lesson.slug[:2] for lesson in course.LESSONS]


def lesson(number: int, minutes: int) -> Part:
    return Part(Item("lesson", f"{number:02}", f"L{number}", minutes, "x", minutes), (), (), None)


def test_what_does_not_fit_is_left_out_from_the_end():
    many = [lesson(number, 45) for number in range(20)]
    found = workshop_plan.plan(many, 1)
    there = [item.lesson for item in found.items if item.kind == "lesson"]
    assert 0 < len(there) < 20
    assert there == [f"{number:02}" for number in range(len(there))]
    assert [item.lesson for item in found.left_out] == [f"{n:02}" for n in range(len(there), 20)]


def test_a_course_that_fits_in_no_day_is_no_plan():
    with pytest.raises(ValueError, match="not even one lesson"):
        workshop_plan.plan([lesson(0, 400)], 1)


def test_a_page_without_its_markers_is_refused():
    with pytest.raises(ValueError, match="one day"):
        workshop.planned("# Workshop\n", ROOT)
