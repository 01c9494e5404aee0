"""A training that is killed by SIGKILL and started again ends bit for bit as if it had not been."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from trainings import LESSON, altered, equal, killed, log, saved, train

from ddp_lessons import launcher, scripts

# Before any checkpoint; in the step whose checkpoint is due; between two; at the end of an epoch;
# in the second epoch.
STEPS = (3, 7, 10, 22, 40)
PLAIN = [(2, 3), (2, 10), (2, 22), (1, 10), (4, 10)]
LINES = (scripts.HERE / LESSON / "train.py").read_text(encoding="utf-8").splitlines()
LOADS = 1 + next(number for number, line in enumerate(LINES) if "torch.load(" in line)
ALL = [(world_size, step) for world_size in (1, 2, 4) for step in STEPS]


def check_goes_on(folder: Path, whole: Path, world_size: int) -> None:
    """Start train.py again in `folder`, and hold what it leaves against the run of `whole`."""
    train(folder, world_size)
    assert log(folder) == log(whole)
    assert equal(saved(folder), saved(whole))


@pytest.mark.parametrize(
    ("world_size", "step"),
    [pytest.param(*one, marks=() if one in PLAIN else pytest.mark.slow) for one in ALL],
)
def test_a_killed_rank_changes_neither_parameters_nor_log(world_size, step, whole, tmp_path):
    run = killed(tmp_path, world_size, world_size - 1, step)
    assert not run.ok
    assert (tmp_path / "checkpoint.pt").exists() is (step > 7)
    check_goes_on(tmp_path, whole(world_size), world_size)


def test_rank_0_may_be_the_one_that_is_killed(whole, tmp_path):
    killed(tmp_path, 2, 0, 18)
    check_goes_on(tmp_path, whole(2), 2)


def test_a_training_that_is_killed_three_times_ends_the_same(whole, tmp_path):
    for count, step in enumerate((9, 10, 12)):  # each counted from where that run began
        before = saved(tmp_path)["step"] if count else 0
        killed(tmp_path, 2, count % 2, step)
        assert saved(tmp_path)["step"] > before
    check_goes_on(tmp_path, whole(2), 2)


def test_a_training_that_is_done_is_left_as_it_is(whole, tmp_path):
    train(tmp_path)
    check_goes_on(tmp_path, whole(2), 2)


@pytest.mark.parametrize("number", [1, 4])
def test_half_a_checkpoint_is_never_loaded(number, whole, tmp_path):
    run = altered(tmp_path, 2, "--tear", number)
    assert run[0].exitcode == -signal.SIGKILL
    half = tmp_path / "checkpoint.unfinished"
    assert half.stat().st_size > 10_000
    with pytest.raises((OSError, RuntimeError)):
        torch.load(half)
    assert (tmp_path / "checkpoint.pt").exists() is (number > 1)
    check_goes_on(tmp_path, whole(2), 2)


def test_a_checkpoint_that_is_written_in_place_is_lost_with_the_kill(tmp_path):
    altered(tmp_path, 2, "--tear", 2, "--without", "rename")
    again = altered(tmp_path, 2)
    assert [rank.failure.line for rank in again] == [LOADS, LOADS]


def test_log_lines_behind_the_checkpoint_are_taken_back(whole, tmp_path):
    altered(tmp_path, 2, "--tear", 3)
    lines = log(tmp_path).splitlines()
    assert len(lines) == 3  # the third stands there, its checkpoint does not
    assert saved(tmp_path)["step"] == 14
    assert altered(tmp_path, 2, "--without", "truncate").ok
    twice = log(tmp_path).splitlines()
    assert twice.count(lines[2]) == 2
    assert list(dict.fromkeys(twice)) == log(whole(2)).splitlines()


@pytest.mark.parametrize("part", ["optimizer", "scheduler", "position", "generators"])
def test_without_one_part_of_the_checkpoint_the_training_ends_elsewhere(part, whole, tmp_path):
    killed(tmp_path, 2, 1, 18)
    assert altered(tmp_path, 2, "--without", part).ok
    ours, theirs = log(tmp_path).splitlines(), log(whole(2)).splitlines()
    assert len(ours) == len(theirs)
    assert ours[:2] == theirs[:2]
    assert ours[2:] != theirs[2:]
    assert not equal(saved(tmp_path)["model"], saved(whole(2))["model"])


def test_without_the_rehearsal_four_ranks_add_in_another_order(tmp_path):
    less = ("--without", "rehearsal", "--epochs", 1)
    assert altered(tmp_path / "whole", 4, *less).ok
    killed(tmp_path / "killed", 4, 1, 18, *less)
    assert altered(tmp_path / "killed", 4, *less).ok
    ours, theirs = saved(tmp_path / "killed")["model"], saved(tmp_path / "whole")["model"]
    assert not equal(ours, theirs)
    assert max((ours[name] - theirs[name]).abs().max() for name in theirs) < 1e-3


@pytest.mark.slow
def test_a_group_that_torchrun_restarts_goes_on_by_itself(whole, tmp_path):
    args = ("--kill", 1, 18)
    run = altered(tmp_path, 2, *args, engine="torchrun", max_restarts=1)
    assert (run.ok, run.attempt) == (True, 1)
    assert run[0].stdout.startswith("world size 2, step 14 is done")
    assert log(tmp_path) == log(whole(2))
    assert equal(saved(tmp_path), saved(whole(2)))


@pytest.mark.slow
def test_a_group_that_plain_torchrun_restarts_goes_on_by_itself(whole, tmp_path):
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--max-restarts=1"),
            *("--nproc-per-node=2", str(scripts.HERE / LESSON / "altered.py")),
            *("--kill", "1", "18", "--out", "out", "--epochs", "2", "--every", "7"),
        ],
        # Without it the attempts share a store, and gloo may call at addresses of the last one.
        env=launcher.rank_environment(2, {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "world size 2, step 14 is done" in done.stdout, done.stderr
    assert log(tmp_path / "out") == log(whole(2))
    assert equal(saved(tmp_path / "out"), saved(whole(2)))
