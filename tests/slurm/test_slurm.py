"""engine="slurm" on a real cluster of two nodes, both on this machine."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest
import torch
from cluster import NODES, cluster
from processes import gone, kernel, marked, until

from ddp_lessons import WorkerError, launch

pytestmark = pytest.mark.usefixtures("slurm")

SOON = 30.0  # seconds in which a cancelled job is gone: Slurm gives its processes 5 to heed SIGTERM

SUM = """
    import os
    import torch
    import torch.distributed as dist
    from ddp_lessons.worker import process_group, record

    with process_group():
        x = torch.tensor([dist.get_rank() + 1.0])
        dist.all_reduce(x)
        print("sum", x.item())
        record("sum", sum=x.item(), local=int(os.environ["LOCAL_RANK"]))
        record("where", gloo=os.environ.get("GLOO_SOCKET_IFNAME"))
        record("threads", threads=torch.get_num_threads())
        dist.barrier()
"""
SLEEPS = """
    import signal, subprocess, time
    from ddp_lessons.worker import process_group

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    with process_group():
        print("here", flush=True)
        time.sleep(600)
"""


def ask(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def jobs() -> dict[int, str]:
    """The state of each job that the cluster remembers, by its number."""
    lines = ask("squeue", "--noheader", "--states=all", "--format=%A %T").splitlines()
    return {int(line.split()[0]): line.split()[1] for line in lines}


def state_of(run) -> str:
    number = (run.log / "job_id").read_text().strip()
    return ask("squeue", "--noheader", "--states=all", "--format=%T", f"--jobs={number}").strip()


def failing(path, **options) -> WorkerError:
    with pytest.raises(WorkerError) as caught:
        launch(path, 4, nnodes=2, engine="slurm", timeout=60, **options)
    return caught.value


def test_a_job_on_two_nodes_gives_the_same_records_as_two_torchruns_here(script, monkeypatch):
    monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    path = script(SUM)
    run = launch(path, 4, nnodes=2, engine="slurm")
    other = launch(path, 4, nnodes=2, engine="torchrun")
    assert run.ok
    for name in ("sum", "local"):
        assert run.values(name) == other.values(name)
    assert [rank.stdout for rank in run] == [rank.stdout for rank in other]
    assert [call.told for call in run.calls] == [call.told for call in other.calls]
    assert [(r.rank, r.node, r.local_rank) for r in run] == [
        (0, 0, 0), (1, 0, 1), (2, 1, 0), (3, 1, 1)
    ]  # fmt: skip
    # The loopback of one node does not lead to another one, and a rank has one core of its node.
    assert run.values("gloo") == [None] * 4
    assert run.values("threads") == [1] * 4
    # A run that ended well is no cancelled job.
    assert state_of(run) == "COMPLETED"
    # The ranks descend from the cluster's own processes, not from this one.
    assert os.getpid() not in {process.pid for rank in run for process in rank.above}
    assert len({rank.parent for rank in run}) == 2


def test_a_rank_of_a_job_that_raises_is_named_with_its_line(script):
    text = """
        import os, time
        import torch.distributed as dist
        from ddp_lessons.worker import process_group
        with process_group():
            if dist.get_rank() == 3:
                raise ValueError("no such file")
            dist.barrier()
    """
    error = failing(script(text))
    assert error.rank == 3
    assert str(error).splitlines()[:3] == [
        "script.py: rank 3 failed first, line 6: ValueError: no such file",
        "  script.py, line 6, in <module>",
        '    raise ValueError("no such file")',
    ]
    until(lambda: state_of(error.run) in ("CANCELLED", "FAILED"))


def test_a_rank_of_a_job_that_is_killed_is_named_with_the_signal(script):
    text = """
        import os, signal, time
        import torch.distributed as dist
        from ddp_lessons.worker import process_group
        with process_group():
            if dist.get_rank() == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            dist.barrier()
    """
    error = failing(script(text))
    assert "rank 2 was killed by SIGKILL (signal 9)" in str(error).splitlines()[0]


@pytest.mark.slow
def test_ranks_of_a_job_that_wait_for_ever_are_named_with_the_line_at_which_they_stand(script):
    text = """
        import time
        import torch.distributed as dist
        from ddp_lessons.worker import process_group
        with process_group():
            if dist.get_rank() == 1:
                time.sleep(600)
            dist.barrier()
    """
    with pytest.raises(WorkerError) as caught:
        launch(script(text), 2, nnodes=2, engine="slurm", timeout=30)
    first = str(caught.value).splitlines()[0]
    assert first.startswith("script.py: after 30 s, rank 0 waits in barrier")
    # No call tells where rank 1 is: its stack does.
    assert "rank 1: script.py, line 6\n    time.sleep(600)" in str(caught.value)


def test_stop_and_the_end_of_the_kernel_cancel_the_job_and_leave_no_process(script):
    path = script(SLEEPS)
    with kernel() as started:
        started.run(f"from ddp_lessons import launch; launch({str(script('', 'warm.py'))!r})")
        for end in ("stop", "kill"):
            before, known = started.others(), set(jobs())
            cell = started.begin(f"launch({str(path)!r}, 2, nnodes=2, engine='slurm', timeout=600)")
            until(lambda before=before: len(sleepers(started.mark) - before) == 2)
            (number,) = set(jobs()) - known
            if end == "stop":
                started.interrupt()
                reply = started.reply(cell)
                assert (reply["ename"], reply["evalue"]) == ("KeyboardInterrupt", "2 ranks stopped")
                gone(lambda before=before: started.others() - before, SOON)
            else:
                os.kill(started.pid, signal.SIGKILL)
                gone(lambda: marked(started.mark), SOON)
            assert jobs()[number] == "CANCELLED"


def sleepers(mark: str) -> set[int]:
    found = set()
    for pid in marked(mark):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if file.read().startswith(b"sleep\0"):
                    found.add(pid)
        except OSError:
            continue  # it has ended meanwhile
    return found


def test_a_job_that_is_still_in_the_queue_at_the_limit_is_cancelled(script):
    whole = ["--parsable", "--exclusive", f"--nodes={len(NODES)}", "--wrap=sleep 600"]
    number = int(ask("sbatch", "--output=/dev/null", *whole))
    try:
        until(lambda: jobs()[number] == "RUNNING")
        with pytest.raises(WorkerError) as caught:
            launch(script(SUM), 2, engine="slurm", timeout=4)
        assert str(caught.value).startswith(
            "script.py: the limit of 4 s came when 0 of 2 ranks had been started: the job waits in "
            "the queue (Slurm says: "
        )
        assert state_of(caught.value.run) == "CANCELLED"
    finally:
        ask("scancel", str(number))
    until(lambda: jobs()[number] == "CANCELLED")


def test_sbatch_without_a_cluster_is_told_in_few_words(script, monkeypatch, tmp_path):
    (tmp_path / "slurm.conf").write_text(
        "ClusterName=none\nSlurmctldHost=localhost\nSlurmctldPort=1\nMessageTimeout=2\n"
    )
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    with pytest.raises(RuntimeError, match="^sbatch found no cluster$"):
        launch(script(SUM), 2, engine="slurm")


def test_a_job_that_the_cluster_refuses_is_told_in_sbatchs_words(script, monkeypatch):
    monkeypatch.setenv("SBATCH_PARTITION", "nowhere")
    with pytest.raises(RuntimeError, match="^sbatch refused the job: .*nvalid partition"):
        launch(script(SUM), 2, engine="slurm")


@pytest.mark.slow
def test_the_cluster_leaves_no_process_behind():
    with cluster() as env:
        home = os.path.dirname(env["SLURM_CONF"])  # noqa: PTH120
        assert len(marked(home)) >= 2 + len(NODES)
    assert not marked(home)
    assert not os.path.exists(home)  # noqa: PTH110


def test_the_training_template_gives_the_same_parameters_on_two_nodes_as_here(tmp_path):
    def trained(name: str, **how) -> dict[str, torch.Tensor]:
        args = ("--out", tmp_path / name, "--epochs", 2)
        launch("10_training_template/train.py", 2, args=args, device="cpu", timeout=120, **how)
        return torch.load(tmp_path / name / "checkpoint.pt")["model"]

    here, there = trained("here"), trained("there", nnodes=2, engine="slurm")
    assert here.keys() == there.keys()
    for name, weights in here.items():
        torch.testing.assert_close(there[name], weights, rtol=1e-6, atol=1e-6)
