"""The grid of numbers before and after a call: what it reads from records, and what it draws."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ddp_lessons import views
from ddp_lessons.placement import place
from ddp_lessons.run import Rank, Record, Run
from ddp_lessons.views import number_grid, theme


def a_run(*ranks: dict[str, dict]) -> Run:
    """A run whose ranks made these records, name -> values, in this order."""
    made = []
    for number, records in enumerate(ranks):
        found = tuple(Record(number, name, 0.0, 1, values) for name, values in records.items())
        made.append(Rank(number, "cpu", 1, 1, 0, "", "", found, True))
    placed = place(len(ranks), gpus=0, nccl=False)
    return Run("some.py", len(ranks), placed, 0.5, tuple(made), Path("log"))


def call(before: dict, after: dict | None, name: str = "sum") -> dict[str, dict]:
    found = {f"before {name}": before, f"after {name}": after}
    return {key: values for key, values in found.items() if values is not None}


def alike(number: int, before: dict, after: dict) -> Run:
    return a_run(*[call(before, after)] * number)


def fills(run: Run) -> list[str]:
    """The rank colours of the drawing, one for each slice."""
    drawn = re.findall(r"fill: (#[0-9a-f]{6}); opacity", views.before_after(run).svg)
    assert set(drawn) <= set(theme.RANKS)
    return drawn


def test_the_decimal_places_of_a_number_say_who_gave_what():
    assert number_grid.origins(203) == {0: 3, 2: 200}
    assert number_grid.origins(1010) == {1: 10, 3: 1000}
    assert number_grid.origins(0) == {}


@pytest.mark.parametrize("number", [-1, 1.5, 2.0, True, "3", {}])
def test_what_has_no_decimal_places_to_read_is_refused(number):
    with pytest.raises(ValueError, match="whole numbers"):
        number_grid.origins(number)
    with pytest.raises(ValueError, match="whole numbers"):
        views.before_after(a_run(call({"x": number}, {"x": number})))


def test_a_sum_is_drawn_in_a_slice_for_each_rank_that_gave_to_it():
    run = a_run(call({"x": [1]}, {"x": [11]}), call({"x": [10]}, {"x": [10]}))
    zero, one = theme.RANKS[:2]
    # Before: one slice each. After: rank 0 holds both, as the digits stand; rank 1 its own.
    assert fills(run) == [zero, one, one, zero, one]


def test_an_empty_place_has_no_colour():
    assert fills(alike(1, {"x": [0, 0]}, {"x": [0, 0]})) == []


def thick(run: Run) -> int:
    return views.before_after(run).svg.count("stroke-width: 1.8; stroke-linejoin: miter")


def test_only_changed_numbers_have_a_thick_edge():
    assert thick(alike(1, {"x": [1, 2, 3]}, {"x": [1, 2, 3]})) == 0
    assert thick(alike(1, {"x": [1, 2, 3]}, {"x": [1, 5, 3]})) == 1
    assert thick(alike(2, {"x": [[1], [2]]}, {"x": [[3], [4]]})) == 4


def told(run: Run) -> str:
    return repr(views.before_after(run))


def test_the_sentence_says_what_a_call_changed_and_where():
    changed = call({"x": 10}, {"x": 1})
    assert told(a_run(call({"x": 1}, {"x": 1}), changed)) == "sum: x becomes 1 on rank 1."
    assert told(alike(2, {"x": 1}, {"x": 11})) == "sum: x becomes 11 on every rank."
    assert told(alike(2, {"x": 1}, {"x": 1})) == "sum: no number changes."
    three = a_run(changed, call({"x": 1}, {"x": 1}), changed)
    assert told(three) == "sum: x becomes 1 on ranks 0 and 2."
    four = a_run(changed, changed, call({"x": 1}, {"x": 1}), changed)
    assert told(four) == "sum: x becomes 1 on ranks 0, 1 and 3."


def test_a_result_that_was_not_there_before_is_no_change():
    assert told(alike(2, {"x": 1}, {"x": 1, "y": None})) == "sum: no number changes."


def test_a_call_that_does_not_return_is_named_with_its_rank():
    run = a_run({}, call({"x": 30}, None))
    assert told(run) == "sum: never returns on rank 1."
    # And no rank that did not make the call.
    (band,) = number_grid.bands_of(run)
    assert band.lost == [1]


def test_each_call_of_each_run_is_a_band_in_the_order_of_the_script():
    first = call({"x": 1}, {"x": 2}, "first") | call({"x": 2}, {"x": 3}, "second")
    other = call({"x": 3}, {"x": 4}, "third")
    picture = views.before_after(a_run(first), a_run(other, other))
    assert re.findall(r"(\w+):", repr(picture)) == ["first", "second", "third"]


def test_a_call_that_only_a_later_rank_made_stands_where_that_rank_made_it():
    one, two, three = (call({"x": 1}, {"x": 1}, name) for name in ("one", "two", "three"))
    run = a_run(one | three, one | two | three)
    assert [band.call for band in number_grid.bands_of(run)] == ["one", "two", "three"]


def test_records_with_other_names_are_left_alone():
    run = a_run({"before": {"x": 1.5}, "beforehand": {"x": 1}, "done": {}} | call({"x": 1}, {}))
    assert [band.call for band in number_grid.bands_of(run)] == ["sum"]
    with pytest.raises(ValueError, match="no records named"):
        views.before_after(a_run({"done": {"x": 1}}))


@pytest.mark.parametrize("value", [7, [7], [[7]]])
def test_a_number_a_list_and_a_list_of_lists_are_all_drawn(value):
    assert number_grid.parts(value) == [[7]]
    assert fills(alike(1, {"x": value}, {"x": value})) == [theme.RANKS[0]] * 2
