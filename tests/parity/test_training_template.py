"""Lesson 10's train.py trains well and alike, however it is started and however its work is shared.

That it goes on exactly after a kill is proven in tests/resume.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from ddp_lessons import WorkerError, launch, launcher, scripts

HERE = scripts.HERE / "10_training_template"
SHORT = ("--epochs", "2")
TRIES = 3  # of what ends in Python's own shutdown, where DDP on gloo aborts now and then

SPAWN = """
import os, runpy, sys
import torch.multiprocessing as mp

def start(rank, script):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
    runpy.run_path(script, run_name="__main__")

if __name__ == "__main__":
    count, *sys.argv = sys.argv[1:]
    os.environ.update(WORLD_SIZE=count, LOCAL_WORLD_SIZE=count, MASTER_ADDR="127.0.0.1")
    import socket
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        os.environ["MASTER_PORT"] = str(free.getsockname()[1])
    mp.spawn(start, (sys.argv[0],), nprocs=int(count))
"""


def trained(folder: Path, world_size: int = 2, *args: object, **how: Any) -> Path:
    launch(HERE / "train.py", world_size, args=("--out", folder, *SHORT, *args), **how)
    return folder


def by_command(command: list[str], folder: Path) -> Path:
    for number in range(TRIES):
        out = folder / f"try_{number}"
        done = subprocess.run(
            [sys.executable, *command, str(HERE / "train.py"), "--out", str(out), *SHORT],
            env=launcher.rank_environment(2, {}),
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=120,
        )
        if done.returncode == 0:
            return out
        aborted = done.returncode == -signal.SIGABRT or "SIGABRT" in done.stderr
        assert aborted or re.search(r"exitcode\s*: -6", done.stderr), done.stderr
    raise AssertionError(f"aborted {TRIES} times")


@pytest.fixture(scope="module")
def launched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two ranks leave behind."""
    return trained(tmp_path_factory.mktemp("launched"))


def model(folder: Path) -> dict[str, torch.Tensor]:
    return torch.load(folder / "checkpoint.pt")["model"]


def lines(folder: Path) -> list[dict[str, float]]:
    text = (folder / "log.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def gap(one: Path, other: Path) -> float:
    ours, theirs = model(one), model(other)
    assert ours.keys() == theirs.keys()
    return max((ours[name] - theirs[name]).abs().max().item() for name in ours)


@pytest.mark.parametrize("way", ["torchrun", "spawn"])
def test_torchrun_and_spawn_train_the_parameters_that_launch_trains(way, launched, tmp_path):
    (tmp_path / "spawn.py").write_text(SPAWN)
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    ways = {"torchrun": torchrun, "spawn": [str(tmp_path / "spawn.py"), "2"]}
    other = by_command(ways[way], tmp_path)
    assert gap(launched, other) < 1e-6
    for ours, theirs in zip(lines(launched), lines(other), strict=True):
        assert ours == pytest.approx(theirs, abs=1e-6)


def test_plain_python_is_a_world_of_one_rank(tmp_path):
    assert gap(trained(tmp_path / "one", 1), by_command([], tmp_path)) < 1e-6


@pytest.mark.parametrize(
    "world_size", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 4))]
)
def test_at_least_95_of_100_test_digits_are_right(world_size, tmp_path):
    launch(HERE / "train.py", world_size, args=["--out", tmp_path])
    assert lines(tmp_path)[-1]["accuracy"] >= 0.95


def test_the_accuracy_counts_every_test_sample_once(launched):
    inner = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(), nn.Linear(128, 10)).eval()
    inner.load_state_dict(model(launched))
    digits = load_digits()
    mixed = torch.randperm(1797, generator=torch.Generator().manual_seed(0))[1408:]
    x, y = torch.tensor(digits.data).float()[mixed] / 16, torch.tensor(digits.target)[mixed]
    right = (inner(x).argmax(dim=1) == y).sum().item()
    assert len(y) == 389  # odd: two ranks have unequal shares
    assert lines(launched)[-1]["accuracy"] == pytest.approx(right / 389, abs=1e-6)


@pytest.mark.parametrize(
    "more",
    [(1, "--accumulate", 2), (2, "--accumulate", 1), pytest.param((4,), marks=pytest.mark.slow)],
)
def test_ranks_and_micro_batches_share_the_same_steps(more, tmp_path):
    still = ("--dropout", 0)  # each rank has its own
    theirs = trained(tmp_path / "theirs", 1, *still, "--accumulate", 1)
    ours = trained(tmp_path / "ours", *more, *still)
    assert gap(ours, theirs) < 1e-4
    assert lines(ours)[-1] == pytest.approx(lines(theirs)[-1], abs=1e-2)
    assert lines(ours)[0]["loss"] == pytest.approx(lines(theirs)[0]["loss"], abs=1e-5)


def test_each_rank_has_a_dropout_of_its_own(launched, tmp_path):
    args = ["--without", "own seed", "--out", tmp_path, *SHORT]
    launch(HERE / "altered.py", args=args)
    for folder, equal in {tmp_path: True, launched: False}.items():
        first, second = torch.load(folder / "checkpoint.pt")["generators"]
        assert torch.equal(first[0], second[0]) is equal


@pytest.mark.parametrize(("before", "after"), [(2, 1), pytest.param(2, 4, marks=pytest.mark.slow)])
def test_another_world_size_goes_on_with_the_same_steps(before, after, tmp_path):
    still = ("--dropout", 0)
    whole = trained(tmp_path / "whole", before, *still)
    trained(tmp_path / "moved", before, *still, "--minutes", 0)
    assert len(lines(tmp_path / "moved")) == 1
    trained(tmp_path / "moved", after, *still)
    assert [line["step"] for line in lines(tmp_path / "moved")] == [11, 22, 33, 44]
    assert gap(whole, tmp_path / "moved") < 1e-4


def test_the_clock_of_one_rank_stops_all_with_a_checkpoint(launched, tmp_path):
    script = tmp_path / "one_late.py"
    script.write_text(
        "import os, runpy, sys\n"
        "if os.environ['RANK'] == '1':\n"
        "    sys.argv += ['--minutes', '0']\n"
        f"runpy.run_path({str(HERE / 'train.py')!r}, run_name='__main__')\n"
    )
    assert launch(script, args=["--out", tmp_path / "stopped", *SHORT]).ok
    assert [line["step"] for line in lines(tmp_path / "stopped")] == [11]
    trained(tmp_path / "stopped")
    assert gap(launched, tmp_path / "stopped") == 0


def test_what_every_rank_must_do_is_not_for_rank_0_alone(tmp_path):
    with pytest.raises(WorkerError, match="all_reduce") as caught:
        launch(HERE / "altered.py", args=["--without", "everybody", "--out", tmp_path, *SHORT])
    assert "int64 [2]" in str(caught.value)


def test_a_batch_that_cannot_be_shared_is_refused(tmp_path):
    with pytest.raises(WorkerError) as caught:
        trained(tmp_path, 3)
    assert refused(caught.value, "--batch must divide")


def refused(error: WorkerError, why: str) -> bool:
    """Whether the rank to blame has left with that message: another one may have lost it before it
    came so far."""
    guilty = error.run[error.rank]
    return guilty.exitcode == 2 and why in guilty.stderr


def altered_start(folder: Path, *lines: str) -> Path:
    """A script that runs `lines`, then train.py."""
    script = folder / "start.py"
    run = f"runpy.run_path({str(HERE / 'train.py')!r}, run_name='__main__')"
    script.write_text("\n".join(["import os, runpy, sys", *lines, run]))
    return script


def test_a_checkpoint_of_a_run_with_other_arguments_is_refused(tmp_path):
    stopped = trained(tmp_path, 1, "--minutes", 0)
    before = model(stopped)
    for more in (("--batch", 32), ("--epochs", 4), ("--lr", 0.1)):
        with pytest.raises(WorkerError) as caught:
            trained(tmp_path, 1, *more)
        assert refused(caught.value, "with other arguments")
    assert all(torch.equal(before[name], tensor) for name, tensor in model(stopped).items())


def test_ranks_that_do_not_see_the_same_checkpoint_are_refused(tmp_path):
    trained(tmp_path / "a", 1, "--minutes", 0)
    elsewhere = "sys.argv[sys.argv.index('--out') + 1] += os.environ['RANK'].strip('0')"
    with pytest.raises(WorkerError) as caught:
        launch(altered_start(tmp_path, elsewhere), args=["--out", tmp_path / "a", *SHORT])
    assert refused(caught.value, "they go on after steps [11, 0]")
    assert [line["step"] for line in lines(tmp_path / "a")] == [11]


def test_loader_workers_get_other_seeds_on_each_rank_and_in_each_epoch(tmp_path):
    told = (
        "from torch.utils.data import DataLoader",
        "make = DataLoader.__init__",
        "def tell(self, *args, generator, **more):",
        "    print('seed', generator.initial_seed(), flush=True)",
        "    make(self, *args, generator=generator, **more)",
        "DataLoader.__init__ = tell",
    )
    run = launch(altered_start(tmp_path, *told), args=["--out", tmp_path / "a", *SHORT])
    seeds = re.findall(r"seed \d+", "".join(rank.stdout for rank in run))
    assert len(seeds) == len(set(seeds)) == 4


def test_the_checkpoint_fits_a_bare_model(launched):
    assert not any(name.startswith("module.") for name in model(launched))
