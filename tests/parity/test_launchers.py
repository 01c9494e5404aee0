"""The scripts of lesson 11 as they are started without this course, and restarts by torchrun."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ddp_lessons import WorkerError, launch, scripts

LIMIT = 240  # seconds, for a busy machine
HERE = scripts.HERE / "11_launchers"


def printed(text: str) -> list[dict]:
    """The records that ranks print where nobody collects them, in rank order."""
    lines = [json.loads(line) for line in text.splitlines() if line.startswith('{"rank": ')]
    return sorted(lines, key=lambda line: line["rank"])


def test_spawn_py_makes_the_same_records_as_a_plain_python_script():
    env = {name: value for name, value in os.environ.items() if name != "WORLD_SIZE"}
    command = [sys.executable, str(HERE / "spawn.py")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=LIMIT)
    # No RANK tells record() who it is there: both say 0, the values say who they are.
    steps = [line["values"] for line in printed(done.stdout) if line["name"] == "step"]
    run = launch(HERE / "spawn.py", engine="python", device="cpu", timeout=LIMIT)
    mine = [record.values for record in run.records if record.name == "step"]
    assert sorted(steps, key=lambda one: one["rank"]) == mine
    assert mine == [{"rank": rank, "alike": True} for rank in range(2)]
    assert run.values("RANK") == run.values("WORLD_SIZE") == [None, None]


def test_the_old_launcher_sets_what_torchrun_sets_and_adds_an_argument():
    cards = {"CUDA_VISIBLE_DEVICES": "2,3"}
    old = launch(HERE / "old.py", engine="python", env=cards, timeout=LIMIT)
    new = launch(HERE / "place.py", engine="torchrun", timeout=LIMIT)
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
        assert old.values(name) == new.values(name)
    assert old.values("arguments") == [["--local-rank=0"], ["--local-rank=1"]]
    assert new.values("arguments") == [[], []]
    assert old.values("gpus") == ["2,3", "2,3"]
    assert old.starter.stdout.startswith("FutureWarning: The module torch.distributed.launch is ")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return tmp_path / "epochs.json"


def test_a_restart_ends_with_the_total_of_a_run_that_nothing_happened_to(saved):
    run = launch(
        HERE / "restart.py", engine="torchrun", max_restarts=1, args=[saved], timeout=LIMIT
    )
    assert run.values("attempt") == [1, 1]
    assert run.values("first_epoch") == [2, 2]
    assert run.values("total") == [2 * (0 + 1 + 2 + 3)] * 2
    ((first, second),) = run.earlier
    assert {rank.pid for rank in (first, second)}.isdisjoint(rank.pid for rank in run)
    assert [record.values["first_epoch"] for record in first.records] == [0]
    assert not second.finished


def test_without_a_restart_the_script_goes_on_when_it_is_started_again(saved):
    with pytest.raises(WorkerError, match="rank 1 was killed by SIGKILL"):
        launch(HERE / "restart.py", args=[saved])
    assert json.loads(saved.read_text()) == {"epochs": 2, "total": 2}
    run = launch(HERE / "restart.py", args=[saved])
    assert run.values("first_epoch") == [2, 2]
    assert run.values("total") == [12, 12]
