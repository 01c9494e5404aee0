"""Run and what it says as text, from made-up facts."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

from ddp_lessons.placement import place
from ddp_lessons.run import Rank, Record, Run, WorkerError, say
from ddp_lessons.text import folded, left_out, short


def a_record(rank: int, name: str = "step", **values) -> Record:
    return Record(rank, name, 1.0, 7, values)


def a_rank(number: int, *records: Record, exitcode=0, finished=True, stdout="") -> Rank:
    return Rank(number, "cpu", 4000 + number, 1, exitcode, stdout, "", records, finished)


def a_run(*ranks: Rank) -> Run:
    placed = place(len(ranks), gpus=0, nccl=False)
    return Run("some.py", len(ranks), placed, 0.5, ranks, Path("log"))


def test_a_run_is_a_sequence_of_its_ranks():
    run = a_run(a_rank(0), a_rank(1))
    assert (len(run), run[1].rank, [rank.rank for rank in run]) == (2, 1, [0, 1])


@pytest.mark.parametrize(
    ("exitcode", "finished", "ok"),
    [(0, True, True), (0, False, False), (1, True, False), (None, True, False), (-6, True, False)],
)
def test_a_run_is_ok_only_if_each_rank_wrote_its_end_marker_and_left_with_0(exitcode, finished, ok):
    assert a_run(a_rank(0), a_rank(1, exitcode=exitcode, finished=finished)).ok is ok


def test_values_are_each_ranks_last_in_rank_order_and_none_where_there_is_none():
    run = a_run(
        a_rank(0, a_record(0, x=1), a_record(0, x=2)), a_rank(1), a_rank(2, a_record(2, x=3))
    )
    assert run.values("x") == [2, None, 3]
    assert [record.rank for record in run.records] == [0, 0, 2]


def test_a_value_that_no_rank_recorded_is_an_error_that_names_those_there_are():
    run = a_run(a_rank(0, a_record(0, loss=1.0, step=2)))
    with pytest.raises(KeyError, match="no rank recorded 'los'; recorded: loss, step"):
        run.values("los")
    with pytest.raises(KeyError, match="recorded: nothing"):
        a_run(a_rank(0)).values("x")


def test_a_recorded_none_is_a_value():
    assert a_run(a_rank(0, a_record(0, x=None)), a_rank(1)).values("x") == [None, None]


def test_the_summary_is_a_table_with_a_row_per_rank_and_then_what_they_printed():
    run = a_run(
        a_rank(0, a_record(0, loss=0.5), a_record(0, loss=0.25), stdout="a\nb\n"),
        a_rank(1, a_record(1, loss=2.0, name="x"), stdout="c\n"),
    )
    assert repr(run).splitlines() == [
        "some.py on 2 ranks: ok",
        "rank  loss (last of 2)",
        "   0              0.25",
        "   1               2.0",
        "rank 0 | a",
        "rank 0 | b",
        "rank 1 | c",
    ]


def test_the_summary_holds_no_process_id_time_device_or_path():
    text = repr(a_run(a_rank(0, a_record(0, x=1)), a_rank(1, exitcode=1, finished=False)))
    assert text.startswith("some.py on 2 ranks: failed")
    assert not {"4000", "4001", "0.5", "cpu", "gloo", "log"} & set(text.split())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.5, "1.5"),
        (2.0, "2.0"),
        (1 / 3, "0.3333"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (1e9, "1e+09"),
        (12, "12"),
        (True, "True"),
        (None, "None"),
        ([1.0, [2, 0.123456]], "[1.0, [2, 0.1235]]"),
        ({"a": 0.5}, "{a: 0.5}"),
        ("two\nlines", "two lines"),
    ],
)
def test_a_value_is_told_in_one_short_line(value, text):
    assert short(value) == text


def test_a_long_value_is_cut():
    assert short(list(range(100)), width=10) == "[0, 1, 2,…"


def test_nineteen_lines_are_shown_whole_and_of_twenty_the_middle_is_counted():
    lines = [str(number) for number in range(20)]
    assert folded("\n".join(lines[:19])) == lines[:19]
    assert folded("\n".join(lines)) == [*lines[:12], "… 2 lines hidden …", *lines[14:]]


def test_lines_that_were_left_out_before_are_counted_with_the_hidden_ones():
    text = "\n".join(["x"] * 20 + [left_out(1_000, 5_000)] + ["x"] * 20)
    assert f"… {40 - 18 + 1_000:,} lines hidden …" in folded(text)


def test_an_error_of_a_launch_crosses_a_pool_of_processes_whole():
    error = WorkerError("some.py: rank 1 failed", a_run(a_rank(0), a_rank(1, exitcode=1)), 1)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.rank, copy.run) == (str(error), 1, error.run)


def test_a_notebook_shows_an_errors_one_sentence_and_no_frames():
    for error in (say(ValueError("so not")), WorkerError("so not", a_run(a_rank(0)), 0)):
        (line,) = pickle.loads(pickle.dumps(error))._render_traceback_()
        assert "so not" in line and type(error).__name__ in line


def test_a_notebook_shows_long_sentences_in_lines_and_code_as_it_is():
    sentence = "rank 0 waits in send to rank 1, line 13; " * 4
    code = "    dist.all_to_all_single(" + "x, " * 40 + ")"
    text = f"some.py: {sentence}\n{code}\n  {sentence}"
    (shown,) = WorkerError(text, a_run(a_rank(0)), 0)._render_traceback_()
    lines = shown.replace("\x1b[1m", "").replace("\x1b[0m", "").split("\n")
    assert code in lines
    assert all(len(line) <= 96 for line in lines if line != code)
    told = lines[lines.index(code) + 1 :]
    assert len(told) > 1 and all(re.match(r"  \S", line) for line in told)
    assert " ".join(shown.split()) == " ".join(f"\x1b[1mWorkerError\x1b[0m: {text}".split())


def test_a_notebook_shows_what_a_failed_run_printed_last():
    chatty = a_rank(1, stdout="".join(f"step {n}\n" for n in range(9)), exitcode=1)
    shown = WorkerError("so not", a_run(a_rank(0), chatty), 1)._render_traceback_()
    assert shown[2:] == [
        "rank 1 | … 4 lines hidden …",
        *(f"rank 1 | step {n}" for n in range(4, 9)),
    ]


def test_a_rank_that_a_run_does_not_have_is_refused_with_the_range():
    with pytest.raises(IndexError, match="this run has ranks 0 to 1, not 2"):
        a_run(a_rank(0), a_rank(1))[2]
