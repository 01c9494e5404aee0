"""The machine check: what it advises, and that its text is the same on every machine."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ddp_lessons import course, machine
from ddp_lessons.machine import GIB, advice, check_machine


def test_a_small_dev_shm_is_warned_of_with_the_way_out() -> None:
    told = " ".join(advice(0, False, 4, 8 * GIB, 16 * 2**20))
    assert "/dev/shm has 0.02 GiB" in told
    assert "--shm-size=1g" in told
    assert "shm" not in " ".join(advice(0, False, 4, 8 * GIB, 2 * GIB))


@pytest.mark.parametrize(
    ("gpus", "nccl", "words"),
    [
        (0, False, "No GPU: the ranks use gloo"),
        (0, True, "No GPU: the ranks use gloo"),
        (2, False, "this torch has no NCCL"),
        (1, True, "One GPU: NCCL wants one for each rank"),
        (8, True, "runs of up to 8 ranks use NCCL"),
    ],
)
def test_the_advice_says_where_ranks_will_run(gpus: int, nccl: bool, words: str) -> None:
    assert words in advice(gpus, nccl, 4, 8 * GIB, None)[0]


def test_one_core_and_little_memory_are_named() -> None:
    told = " ".join(advice(0, False, 1, 2 * GIB, None))
    assert "One CPU core" in told
    assert "Less than 4 GiB" in told


@pytest.mark.parametrize(
    ("gpus", "needs"), [(0, set()), (1, set()), (2, {1, 2}), (4, {1, 2, 4}), (8, {1, 2, 4, 8})]
)
def test_lessons_that_run_on_nccl_are_those_whose_ranks_have_gpus(
    monkeypatch: pytest.MonkeyPatch, gpus: int, needs: set[int]
) -> None:
    monkeypatch.setattr(machine, "trial", lambda: (True, "fine"))
    monkeypatch.setattr(machine, "facts", lambda gpus, nccl: [])
    monkeypatch.setattr(machine.placement, "gpu_count", lambda: gpus)
    monkeypatch.setattr(machine.placement, "nccl_built", lambda: True)
    found = [nccl for _, nccl in check_machine().lessons]
    assert found == [lesson.ranks in needs for lesson in course.LESSONS]


def test_the_check_runs_two_real_ranks() -> None:
    found = check_machine()
    assert found.works
    assert repr(found) == "Two real processes added 1 and 2 and both got 3. Every lesson runs here."
    assert {"Python", "torch", "NCCL", "/dev/shm"} <= {fact.name for fact in found.facts}


def test_a_trial_that_fails_is_reported_and_never_praised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "TRIAL", "00_start_here/crash.py")
    works, verdict = machine.trial()
    assert not works
    assert "rank 1 failed first, line 10: IndexError" in verdict


def test_the_start_of_the_server_is_not_a_part_of_the_trial(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = []

    def noted(script: str, world_size: int, **options: float) -> object:
        calls.append((world_size, options.get("timeout")))
        return launch(script, world_size, **options)

    launch = machine.launch
    monkeypatch.setattr(machine, "launch", noted)
    assert machine.trial()[0]
    assert calls == [(1, None), (2, machine.LIMIT)]


def test_a_wrong_sum_is_not_a_success(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "TRIAL", "03_rank_and_world_size/roll_call.py")
    with pytest.raises(KeyError):  # it records no sum
        machine.trial()


def test_the_terminal_command_ends_with_0_where_all_is_well() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ddp_lessons", "machine"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "both got 3" in done.stdout
    assert done.stderr == ""
