"""What happens around GPUs, on machines that may have none: torch.cuda is patched, never used.

The pretended machines have 0, 1, 2 and 8 GPUs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from ddp_lessons import engines, folders, launch, launcher, placement
from ddp_lessons.engines import Job, forkserver, torchrun
from ddp_lessons.worker import process_group


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple]:
    """What process_group() asks of torch, in order; nothing of it is done."""
    made: list[tuple] = []

    def note(name: str) -> Callable[..., None]:
        return lambda *args, **kwargs: made.append((name, *args, kwargs))

    monkeypatch.setattr(torch.cuda, "set_device", note("set_device"))
    monkeypatch.setattr(dist, "init_process_group", note("init"))
    monkeypatch.setattr(dist, "destroy_process_group", note("destroy"))
    return made


@pytest.fixture
def rank_of(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make this process look like a local rank on a machine with that many GPUs."""

    def be(local_rank: int, local_world_size: int, gpus: int, nccl: bool = True) -> None:
        monkeypatch.setenv("LOCAL_RANK", str(local_rank))
        monkeypatch.setenv("LOCAL_WORLD_SIZE", str(local_world_size))
        monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
        monkeypatch.setattr(dist, "is_nccl_available", lambda: nccl)

    return be


@pytest.mark.parametrize(
    ("local_rank", "local_world_size", "gpus"),
    [(0, 1, 1), (0, 1, 2), (1, 2, 2), (1, 2, 8), (7, 8, 8)],
)
def test_a_rank_takes_its_gpu_before_it_joins_over_nccl(
    local_rank, local_world_size, gpus, calls, rank_of
):
    rank_of(local_rank, local_world_size, gpus)
    with process_group() as device:
        inside = list(calls)
    mine = torch.device("cuda", local_rank)
    assert device == mine
    assert inside == [("set_device", mine, {}), ("init", "nccl", {"device_id": mine})]
    assert calls[2:] == [("destroy", {})]


@pytest.mark.parametrize(
    ("local_rank", "local_world_size", "gpus"),
    [(0, 1, 0), (1, 2, 0), (0, 2, 1), (1, 2, 1), (2, 3, 2), (8, 9, 8)],
)
def test_a_rank_without_a_gpu_of_its_own_joins_over_gloo_and_touches_no_gpu(
    local_rank, local_world_size, gpus, calls, rank_of
):
    rank_of(local_rank, local_world_size, gpus)
    with process_group() as device:
        inside = list(calls)
    assert device == torch.device("cpu")
    assert inside == [("init", "gloo", {})]
    assert calls[1:] == [("destroy", {})]


def test_gpus_without_nccl_are_left_alone(calls, rank_of):
    rank_of(0, 2, 2, nccl=False)
    with process_group() as device:
        pass
    assert device == torch.device("cpu")
    assert calls == [("init", "gloo", {}), ("destroy", {})]


@pytest.mark.parametrize(("gpus", "last"), [(0, "destroy"), (2, "init")])
def test_after_an_error_the_group_is_left_where_that_cannot_wait_for_others(
    gpus: int, last: str, calls, rank_of
):
    rank_of(1, 2, gpus)
    with pytest.raises(ZeroDivisionError), process_group():
        raise ZeroDivisionError
    assert calls[-1][0] == last


def test_a_group_that_was_never_joined_is_not_left(calls, rank_of, monkeypatch):
    def refuse(*args, **kwargs):
        raise RuntimeError("no store")

    rank_of(0, 2, 0)
    monkeypatch.setattr(dist, "init_process_group", refuse)
    with pytest.raises(RuntimeError, match="no store"), process_group():
        pass
    assert calls == []


def test_outside_of_a_launch_the_missing_variable_is_named(calls, monkeypatch):
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    with pytest.raises(KeyError, match="LOCAL_RANK"), process_group():
        pass
    assert calls == []


class NotStarted(Exception):
    """Carries the job that launch() was about to start."""


@pytest.fixture
def job_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Job]:
    """The job that launch() makes on a machine with that many GPUs; no process starts."""
    script = tmp_path / "script.py"
    script.write_text("pass\n")

    def refuse(name: str, job: Job) -> None:
        raise NotStarted(job)

    monkeypatch.setattr(engines, "prepare", lambda name: None)
    monkeypatch.setattr(engines, "workers", refuse)
    monkeypatch.setattr(placement, "nccl_built", lambda: True)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def job(gpus: int, world_size: int, **options) -> Job:
        monkeypatch.setattr(placement, "gpu_count", lambda listed=None: gpus)
        with pytest.raises(NotStarted) as stopped:
            launch(script, world_size, **options)
        return stopped.value.args[0]

    return job


@pytest.mark.parametrize(("gpus", "world_size"), [(1, 1), (2, 2), (8, 2), (8, 8)])
def test_every_rank_sees_all_gpus_and_has_a_local_rank_of_its_own(gpus, world_size, job_of):
    job = job_of(gpus, world_size)
    ranks = [job.machine_env(0) | forkserver.rank_env(rank, job) for rank in range(world_size)]
    assert [env["LOCAL_RANK"] for env in ranks] == [str(rank) for rank in range(world_size)]
    assert {env["LOCAL_WORLD_SIZE"] for env in ranks} == {str(world_size)}
    assert not any("CUDA_VISIBLE_DEVICES" in env for env in ranks)


def test_the_cards_that_the_kernel_was_given_are_the_ranks_cards(job_of, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    assert job_of(2, 2).machine_env(0)["CUDA_VISIBLE_DEVICES"] == "3,5"


@pytest.mark.parametrize(("gpus", "world_size"), [(0, 2), (1, 2), (2, 3), (8, 9)])
def test_ranks_that_run_on_the_cpu_see_no_gpu(gpus: int, world_size: int, job_of, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3,4,5,6,7")
    assert job_of(gpus, world_size).machine_env(0)["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.parametrize("gpus", [1, 2, 8])
def test_asking_for_the_cpu_hides_the_gpus_from_the_ranks(gpus: int, job_of):
    assert job_of(gpus, 1, device="cpu").machine_env(0)["CUDA_VISIBLE_DEVICES"] == ""


def test_what_the_reader_says_of_the_cards_wins(job_of):
    job = job_of(0, 2, env={"CUDA_VISIBLE_DEVICES": "2,3"})
    assert job.machine_env(0)["CUDA_VISIBLE_DEVICES"] == "2,3"


@pytest.mark.parametrize(
    ("gpus", "world_size", "listed", "seen"),
    [
        (2, 2, None, ["0", "1"]),
        (8, 8, None, ["0,1,2,3", "4,5,6,7"]),
        (4, 4, "3,5,7,6", ["3,5", "7,6"]),
        (0, 2, None, ["", ""]),
        (1, 2, None, ["", ""]),
    ],
)
def test_each_machines_agent_starts_with_its_own_cards(
    gpus, world_size, listed, seen, job_of, monkeypatch
):
    if listed:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    job = job_of(gpus, world_size, nnodes=2, engine="torchrun")
    assert [job.machine_env(node)["CUDA_VISIBLE_DEVICES"] for node in range(2)] == seen
    assert f"--nproc-per-node={world_size // 2}" in torchrun.arguments(job)


@pytest.mark.parametrize("gpus", [0, 1])
def test_two_cuda_ranks_on_fewer_gpus_are_refused_before_any_rank_starts(gpus, monkeypatch):
    def begin(*args) -> None:
        pytest.fail("the run had begun")

    monkeypatch.setattr(placement, "gpu_count", lambda listed=None: gpus)
    monkeypatch.setattr(placement, "nccl_built", lambda: True)
    monkeypatch.setattr(folders, "new_run", begin)
    monkeypatch.setattr(engines, "workers", begin)
    with pytest.raises(RuntimeError, match=f"shows {gpus} GPU.*2 ranks need 2 GPUs"):
        launch("00_start_here/hello.py", 2, device="cuda")


@pytest.mark.parametrize("engine", ["forkserver", "torchrun"])
def test_a_rank_on_the_cpu_sees_no_gpu_for_real(engine: str, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    script = tmp_path / "seen.py"
    script.write_text(
        "import os\n"
        "from ddp_lessons.worker import record\n"
        "record('seen', cards=os.environ['CUDA_VISIBLE_DEVICES'])\n"
    )
    run = launch(script, 2, device="cpu", engine=engine)
    assert run.values("cards") == ["", ""]


CUDA_IN_THE_SERVER = """
import torch
from ddp_lessons.worker import record

record("cuda", initialized=torch.cuda.is_initialized(), bad_fork=torch.cuda._is_in_bad_fork())
"""

CUDA_IN_THE_KERNEL = """
import sys
import torch

def trip(*args, **kwargs):
    raise AssertionError("CUDA was asked to start")

# Each of these starts CUDA in the process that calls it. device_count() asks the driver's library.
torch.cuda._lazy_init = torch.cuda.init = torch.cuda.is_available = trip

import ddp_lessons
from ddp_lessons import launch

launch(sys.argv[1], 2)
print(torch.cuda.is_initialized())
"""


def test_a_rank_comes_from_a_server_that_never_started_cuda(tmp_path: Path):
    script = tmp_path / "cuda.py"
    script.write_text(CUDA_IN_THE_SERVER)
    run = launch(script, 2)
    # A fork of a process that has CUDA running is "in bad fork" and cannot use it.
    assert run.values("initialized") == [False, False]
    assert run.values("bad_fork") == [False, False]


def test_neither_import_nor_launch_starts_cuda_in_the_kernel(tmp_path: Path):
    kernel, script = tmp_path / "kernel.py", tmp_path / "script.py"
    kernel.write_text(CUDA_IN_THE_KERNEL)
    script.write_text("pass\n")
    done = subprocess.run(
        [sys.executable, str(kernel), str(script)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(Path(launcher.__file__).parents[1])},
    )
    assert done.stdout.strip() == "False", done.stderr
