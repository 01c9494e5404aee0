"""The time of a run counts from when all its ranks have come to the script."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from ddp_lessons import bootstrap, watch


def say(folder: Path, rank: int, event: str, ago: float = 0.0, attempt: int = 0) -> None:
    here = bootstrap.rank_folder(folder, attempt, rank)
    here.mkdir(parents=True, exist_ok=True)
    with (here / bootstrap.EVENTS).open("a") as file:
        file.write(json.dumps({"event": event, "time": time.monotonic() - ago}) + "\n")


def test_nothing_is_said_while_a_rank_has_not_come_to_the_script(tmp_path: Path):
    told: list[float] = []
    look = watch.begun(tmp_path, 2, 60, told.append)
    assert look() is None
    say(tmp_path, 0, "ready")
    say(tmp_path, 1, "started")
    assert look() is None
    assert told == []


def test_the_last_rank_to_come_starts_the_clock_and_the_rest_is_said_once(tmp_path: Path):
    told: list[float] = []
    look = watch.begun(tmp_path, 2, 1000, told.append)
    say(tmp_path, 0, "ready", ago=500)
    say(tmp_path, 1, "ready", ago=200)
    assert look() == pytest.approx(800, abs=100)
    assert look() is None  # the limit stands
    assert [time.monotonic() - when for when in told] == [pytest.approx(200, abs=100)]


def test_a_rank_that_dies_before_the_script_leaves_the_start_of_the_clock_to_the_next_attempt(
    tmp_path: Path,
):
    told: list[float] = []
    look = watch.begun(tmp_path, 2, 1000, told.append)
    say(tmp_path, 0, "ready", ago=500)
    assert look() is None
    say(tmp_path, 1, "ready", ago=200, attempt=1)
    assert look() is None
    say(tmp_path, 0, "ready", ago=300, attempt=1)
    assert look() == pytest.approx(800, abs=100)
