"""record() and trace(), in this process, with and without somebody who collects."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time

import numpy
import pytest
import torch

from ddp_lessons import worker


@pytest.fixture
def records(tmp_path, monkeypatch):
    monkeypatch.setenv(worker.RECORDS, str(tmp_path / "records.jsonl"))
    monkeypatch.setenv("RANK", "3")

    def read() -> list[dict]:
        return [json.loads(line) for line in (tmp_path / "records.jsonl").read_text().splitlines()]

    return read


def test_a_record_has_its_rank_name_line_and_values_in_order(records):
    worker.record("one", x=1)
    worker.record("two", name="a value may be called name", y=None)
    one, two = records()
    assert (one["rank"], one["name"], one["values"]) == (3, "one", {"x": 1})
    assert two["values"] == {"name": "a value may be called name", "y": None}
    assert (two["line"], two["time"] >= one["time"]) == (one["line"] + 1, True)


def test_tensors_arrays_and_their_numbers_become_plain_numbers(records):
    worker.record(
        "kinds",
        tensor=torch.ones(2, 2, requires_grad=True),
        scalar=torch.tensor(3),
        half=torch.tensor(0.5, dtype=torch.bfloat16),
        array=numpy.arange(2),
        number=numpy.float32(0.5),
        nested={"list": [torch.zeros(1)]},
    )
    assert records()[0]["values"] == {
        "tensor": [[1.0, 1.0], [1.0, 1.0]],
        "scalar": 3,
        "half": 0.5,
        "array": [0, 1],
        "number": 0.5,
        "nested": {"list": [[0.0]]},
    }


@pytest.mark.parametrize(
    "value",
    [torch.zeros(1_000_001), "x" * 1_000_000, [torch.rand(1_000)] * 1_000],
    ids=["tensor", "text", "tensors in a list"],
)
def test_a_record_over_a_megabyte_is_refused_and_nothing_is_written(records, value):
    with pytest.raises(ValueError, match="over 1 MB. Record a summary"):
        worker.record("big", value=value)
    with pytest.raises(FileNotFoundError):
        records()


def test_a_value_without_a_plain_form_is_refused_by_its_type():
    with pytest.raises(TypeError, match="not Linear"):
        worker.record("model", model=torch.nn.Linear(1, 1))


def test_where_nobody_collects_the_record_is_printed(monkeypatch, capsys):
    monkeypatch.delenv(worker.RECORDS, raising=False)
    monkeypatch.setenv("RANK", "1")
    worker.record("seen", x=[1, 2])
    printed = capsys.readouterr().out
    assert printed.startswith('{"rank": 1, "name": "seen", ') and printed.count("\n") == 1


def values(found: list[dict], name: str) -> list[dict]:
    return [record["values"] for record in found if record["name"] == name]


def test_a_span_lasts_as_long_as_its_block_and_keeps_its_values_and_line(records):
    before = time.monotonic()
    with worker.trace() as span:
        with span("outer", step=3):
            inner = span("inner")
            inner.end()
        after = time.monotonic()
    found = records()
    outer, inner = values(found, "span")
    assert (outer["span"], outer["step"], inner["span"]) == ("outer", 3, "inner")
    assert before <= outer["times"][0] <= inner["times"][0] <= inner["times"][1]
    assert inner["times"][1] <= outer["times"][1] <= after
    assert [record["time"] for record in found] == [outer["times"][0], inner["times"][0]]
    assert found[1]["line"] == found[0]["line"] + 1


def test_a_span_may_end_on_another_thread_and_ends_once(records):
    with worker.trace() as span:
        moment = span("moment")
        thread = threading.Thread(target=moment.end)
        thread.start()
        thread.join()
        stop = moment.stop
        moment.end()
    assert values(records(), "span")[0]["times"] == [moment.start, stop]


def test_spans_of_other_threads_come_last_however_they_raced(records):
    with worker.trace() as span:
        thread = threading.Thread(target=lambda: span("other").end())
        thread.start()
        thread.join()
        span("own").end()
    assert [one["span"] for one in values(records(), "span")] == ["own", "other"]


def test_a_span_that_never_ended_says_so_and_an_error_loses_no_span(records):
    with pytest.raises(ZeroDivisionError), worker.trace() as span:
        span("left open")
        with span("broken"):
            raise ZeroDivisionError
    open_one, broken = values(records(), "span")
    assert open_one["times"][1] is None
    assert broken["times"][1] is not None


def test_an_event_of_the_profiler_lies_in_the_span_that_made_it(records):
    x = torch.ones(20, 30)
    with worker.trace("aten::mm", "aten::exp") as span:
        with span("outer"):
            with span("product"):
                x @ x.T
            x.exp()
        torch.mm(x.T, x)
    found = records()
    spans = {one["span"]: one["times"] for one in values(found, "span")}
    events = [(e["event"], e["during"], e["numbers"]) for e in values(found, "event")]
    assert events == [
        ("aten::mm", None, 1200),
        ("aten::exp", "outer", 600),
        ("aten::mm", "product", 1200),
    ]
    [product] = [e["times"] for e in values(found, "event") if e["during"] == "product"]
    assert spans["product"][0] <= product[0] <= product[1] <= spans["product"][1] + 1e-3
    assert {record["line"] for record in found if record["name"] == "event"} == {
        record["line"] - 1 for record in found if record["values"].get("span") == "outer"
    }


def test_a_trace_inside_a_trace_is_refused_and_the_outer_one_goes_on(records):
    with worker.trace("aten::mm") as span:
        with pytest.raises(RuntimeError, match="a profiler is at work already"), worker.trace():
            pass
        with span("after"):
            torch.ones(2, 2) @ torch.ones(2, 2)
    assert [event["during"] for event in values(records(), "event")] == ["after"]


def test_without_collectives_there_is_no_event(records):
    with worker.trace() as span, span("work"):
        torch.ones(3) @ torch.ones(3)
    assert values(records(), "event") == []


def test_the_profilers_own_lines_stay_off_stderr(tmp_path):
    script = "from ddp_lessons.worker import trace\nwith trace(): pass\nwith trace(): pass\n"
    command = [sys.executable, "-c", script]
    env = {**os.environ, worker.RECORDS: str(tmp_path / "records.jsonl")}
    env.pop("KINETO_LOG_LEVEL", None)
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
