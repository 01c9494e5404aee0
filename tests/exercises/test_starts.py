"""The five starts of lesson 02's exercise: real processes, and what the reader is told of them."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import nbformat

from ddp_lessons.checks import starts
from ddp_lessons.checks.grade import grade
from ddp_lessons.checks.starts import Process

KEY = "02_process_groups/will_they_meet"
ANSWERS = Path(__file__).resolve().parents[1] / "answers" / KEY
EXERCISE = Path(__file__).resolve().parents[2] / "exercises" / "02_process_groups.ipynb"


def told() -> dict[str, tuple[Process, ...]]:
    """The table of the exercise, as the starts that it describes."""
    prose = nbformat.read(EXERCISE, as_version=4).cells[0].source
    rows = re.findall(r"^\| ([A-Z]) \| (.*) \|$", prose, re.M)
    return {name: tuple(map(process, text.split(" · "))) for name, text in rows}


def process(text: str) -> Process:
    rank, world_size = map(int, re.search(r"(\d+)/(\d+)", text).groups())
    return Process(rank, world_size, "a second later" in text, "MASTER_PORT" in text)


def test_the_reader_is_told_of_the_starts_that_are_made():
    assert told() == starts.STARTS


def test_a_prediction_of_the_right_form_is_told_so_though_its_words_are_wrong():
    verdicts = {
        name: grade(KEY, ANSWERS / f"{name}.py") for name in ("wrong_early_waits", "wrong_word")
    }
    held = {name: [held for _, held in one.requirements] for name, one in verdicts.items()}
    assert held == {"wrong_early_waits": [True, False], "wrong_word": [False, None]}


def test_every_word_is_right_for_some_process():
    found = starts.outcomes(starts.measured())
    assert {word for words in found.values() for word in words} == set(starts.WORDS)


def test_all_processes_of_a_group_go_on_or_none():
    for start, words in starts.outcomes(starts.measured()).items():
        went_on = words.count(starts.GOES_ON)
        sizes = {process.world_size for process in starts.STARTS[start]}
        assert went_on == 0 or {went_on} == sizes


def test_a_process_that_went_on_was_in_a_group_and_no_other_was():
    run = starts.measured()
    joined = [rank.joined is not None for rank in run]
    assert joined == [outcome == starts.GOES_ON for outcome in run.values("outcome")]
    assert all(rank.called is not None for rank in run)


def test_no_process_of_a_group_goes_on_before_the_last_one_has_come():
    run = starts.measured()
    for start in starts.STARTS:
        them = [rank for rank, name in zip(run, run.values("start"), strict=True) if name == start]
        joined = [rank for rank in them if rank.joined is not None]
        assert all(one.joined >= other.called for one in joined for other in joined)


def test_nobody_answers_at_a_free_port_but_a_store_can_open_there():
    with starts.free_ports(1) as (port,):
        probe = socket.socket()
        assert probe.connect_ex(("127.0.0.1", port)) != 0
        probe.close()
        with socket.socket() as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(("0.0.0.0", port))
            server.listen()
            with socket.create_connection(("127.0.0.1", port), timeout=5):
                pass


def test_the_starts_are_made_once():
    assert starts.measured() is starts.measured()
