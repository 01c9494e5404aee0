"""record(), in this process, with and without somebody who collects."""

from __future__ import annotations

import json

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
