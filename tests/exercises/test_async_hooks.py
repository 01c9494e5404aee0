"""The reference of 08_inside_ddp/async_hooks is what torch's DDP gives."""

from __future__ import annotations

import importlib
import json
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from ddp_lessons import launch
from ddp_lessons.checks import exercise, values

SCRIPT = Path(__file__).with_name("ddp_steps.py")
TASK = exercise.find("08_inside_ddp/async_hooks")
checks = importlib.import_module("ddp_lessons.checks.08_inside_ddp")


@pytest.mark.parametrize("case", TASK.cases(seed=3), ids=lambda case: case.told)
def test_the_reference_is_what_torchs_ddp_gives_at_each_step(case: exercise.Case):
    run = launch(SCRIPT, case.world_size, args=[json.dumps(asdict(case))], device="cpu")
    _, mean = checks.reference(case)
    for rank in run:
        found = [record.values["gradients"] for record in rank.records]
        assert len(found) == len(mean)
        for step, (gradients, wanted) in enumerate(zip(found, mean, strict=True)):
            for have, want in zip(gradients, wanted, strict=True):
                assert (have is None) == (want is None), (step, have, want)
                if want is not None:
                    assert values.same(torch.tensor(have).double(), want), (step, have, want)
