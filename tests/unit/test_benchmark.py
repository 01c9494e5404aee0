"""The launch benchmark's table, and one of its rows for real. No number is judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import launch as benchmark
from benchmarks.results import Result, Side, at_least, at_most, in_turn, table

ROOT = Path(benchmark.__file__).parents[1]


def test_the_sides_of_a_row_take_turns():
    order: list[str] = []

    def measure(name: str):
        return lambda: order.append(name) or float(len(order))

    sides = in_turn(3, "s", a=measure("a"), b=measure("b"))
    assert order == ["a", "b"] * 3
    assert [side.values for side in sides] == [(1.0, 3.0, 5.0), (2.0, 4.0, 6.0)]


def test_a_side_stands_for_its_median_and_not_for_its_mean():
    side = Side("launch", "s", (0.1, 9.0, 0.2))
    assert side.median == 0.2
    assert str(side) == "launch 0.2 s"


@pytest.mark.parametrize(
    ("kind", "reach", "reached"),
    [(at_least, 10, True), (at_least, 10.1, False), (at_most, 10, True), (at_most, 9.9, False)],
)
def test_a_ratio_is_the_first_side_over_the_second_and_may_equal_its_reach(kind, reach, reached):
    result = kind(reach, "what", [Side("a", "s", (20.0,)), Side("b", "s", (2.0,))])
    assert result.ratio == 10
    assert result.reached is reached


def test_the_table_is_plain_text_with_a_line_a_row():
    side = Side("a", "s", (2.0,))
    text = table(
        [
            Result("one", (side, Side("b", "s", (0.5,))), 4.0, ">= 3", True),
            Result("another", (side,), None, "<= 1 s", False),
        ]
    )
    assert text.splitlines() == [
        "what     median values   ratio  reach   reached",
        "one      a 2 s, b 0.5 s  4      >= 3    yes",
        "another  a 2 s           -      <= 1 s  no",
    ]


def test_work_that_was_not_done_is_no_measurement():
    benchmark.expect("sum=", 2, "sum=1\nsum=1\n")
    with pytest.raises(RuntimeError, match="wanted 2 times in:\nsum=1"):
        benchmark.expect("sum=", 2, "sum=1\n")


def test_a_row_runs_and_leaves_every_measurement(tmp_path: Path):
    raw = tmp_path / "raw.json"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.launch"]
        + ["--repeats", "1", "--only", "ranks_64", "--json", str(raw)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    head, line = done.stdout.splitlines()
    assert head.startswith("what")
    assert line.startswith("64 ranks")
    facts = json.loads(raw.read_text())
    assert set(facts["rows"]) == {"ranks_64"}
    for side in facts["rows"]["ranks_64"]["sides"]:
        assert len(side["values"]) == 1
        assert side["values"][0] > 0
