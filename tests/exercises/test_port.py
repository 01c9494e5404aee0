"""The script that is to be ported is the one that a port is compared with."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
import torch

from ddp_lessons.checks import exercise, porting, values

KEY = "10_training_template/port"
NOTEBOOK = Path(__file__).resolve().parents[2] / "exercises" / "10_training_template.ipynb"


def handed_out() -> dict:
    """The names that the cell with the script defines."""
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    (source,) = (cell.source for cell in cells if "RandomSampler(" in cell.source)
    names: dict = {}
    exec(source, names)
    return names


@pytest.mark.parametrize("case", exercise.find(KEY).cases(0), ids=lambda case: case.told)
def test_the_script_gives_what_a_port_must_give(case: exercise.Case, tmp_path: Path):
    script = porting.Script.of(case.values)
    found = porting.watched(handed_out()["train"], script, tmp_path)
    losses, error = found["told"]
    right = script.right
    assert found["trained"] == script.batches[script.start : script.end]
    assert values.same(found["parameters"], right.parameters[0])
    assert losses == pytest.approx([of[0] for of in right.losses])
    assert error == pytest.approx(script.errors(range(script.tests)).mean().item())
    assert found["written"] == [porting.CHECKPOINT]
    assert found["saved"]["step"] == script.end
    assert torch.equal(found["saved"]["model"], found["parameters"])
    assert values.same(found["saved"]["momentum"], porting.momentum(right))
