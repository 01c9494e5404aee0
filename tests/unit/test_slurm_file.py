"""What engine="slurm" does without a cluster: the file for sbatch, and the refusal."""

from __future__ import annotations

import subprocess

import pytest

from ddp_lessons import folders, launch, placement
from ddp_lessons.engines import slurm
from ddp_lessons.launcher import rank_environment


def words(text: str) -> list[str]:
    """The command of the file, as a shell would split it: run with printf in srun's place."""
    command = text[text.index("srun --") :].replace("srun ", "printf '%s\\n' ", 1)
    done = subprocess.run(
        ["bash", "-c", f"SLURM_JOB_ID=20123; hostname() {{ echo first; }}; {command}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_the_file_asks_for_a_task_a_node_and_starts_torchrun_with_its_share_of_the_ranks():
    text = slurm.batch(["train.py", "--epochs", "3"], 8, 2, name="train", minutes=90)
    assert [line for line in text.splitlines() if line.startswith("#SBATCH")] == [
        "#SBATCH --job-name=train",
        "#SBATCH --nodes=2",
        "#SBATCH --ntasks-per-node=1",
        "#SBATCH --cpus-per-task=4",
        "#SBATCH --time=01:30:00",
        "#SBATCH --output=job-%j.log",
    ]
    assert text.startswith("#!/bin/bash\n")
    assert words(text)[2:] == [
        "torchrun",
        "--nnodes=2",
        "--nproc-per-node=4",
        "--rdzv-id=20123",
        "--rdzv-backend=c10d",
        "--rdzv-endpoint=first:20123",
        "train.py",
        "--epochs",
        "3",
    ]


def test_gpus_are_asked_for_only_where_they_are_wanted():
    assert "gpus" not in slurm.batch(["a.py"], 4, 2, name="a", minutes=1)
    assert "#SBATCH --gpus-per-node=2\n" in slurm.batch(["a.py"], 4, 2, name="a", minutes=1, gpus=2)


def test_a_path_with_spaces_and_quotes_reaches_the_job_whole():
    odd = "/home/zoë's files/my $script.py"
    assert words(slurm.batch([odd], 1, 1, name="a", minutes=1))[-1] == odd


def test_without_sbatch_one_sentence_says_so_before_any_process_starts(tmp_path, monkeypatch):
    path = tmp_path / "hello.py"
    path.write_text("print('hello')\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(subprocess, "Popen", None)
    with pytest.raises(RuntimeError, match='^engine="slurm" submits .* no sbatch on its PATH'):
        launch(path, 2, engine="slurm")


def test_the_number_of_a_job_is_read_once_it_is_whole(tmp_path):
    file = tmp_path / slurm.ID
    for text, number in (("", ""), ("12", ""), ("123\n", "123"), ("123;north\n", "123")):
        file.write_text(text)
        assert slurm.job_number(tmp_path) == number


def test_ranks_of_a_job_keep_off_no_interface_and_have_a_core_each(monkeypatch):
    monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    env = rank_environment(4, {}, away=True)
    assert "GLOO_SOCKET_IFNAME" not in env
    assert env["OMP_NUM_THREADS"] == "1"
    assert (
        rank_environment(4, {"GLOO_SOCKET_IFNAME": "ib0"}, away=True)["GLOO_SOCKET_IFNAME"] == "ib0"
    )


def test_the_gpus_of_this_machine_say_nothing_of_a_clusters():
    auto = placement.place(4, 2, "auto", gpus=8, nccl=True, away=True)
    assert (auto.backend, auto.visible) == ("gloo", ("", ""))
    assert 'device="cuda" asks the cluster' in auto.sentence
    cuda = placement.place(4, 2, "cuda", gpus=0, nccl=True, away=True)
    assert cuda.devices == ("cuda:0", "cuda:1", "cuda:0", "cuda:1")
    assert cuda.visible == (None, None)


def test_the_run_of_a_job_is_kept_where_all_nodes_see_it(tmp_path, monkeypatch):
    monkeypatch.setenv("DDP_LESSONS_SHARED", str(tmp_path / "everywhere"))
    folders._session.cache_clear()
    try:
        run = folders.new_run(shared=True)
        assert run.parent.parent == tmp_path / "everywhere"
        assert folders.new_run().parent != run.parent
    finally:
        folders._session.cache_clear()
