"""What a rank sees around it: today's file, today's environment, its own generators and threads."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import psutil
import pytest
import torch
from processes import until

from ddp_lessons import WorkerError, launch


def test_a_script_that_was_edited_between_two_runs_runs_its_new_text(script):
    assert launch(script("print(1)\n"), 2)[1].stdout == "1\n"
    assert launch(script("print(2)\n"), 2)[1].stdout == "2\n"


def test_a_module_beside_the_script_that_was_edited_is_read_anew_too(script):
    main = script("import neighbour\nprint(neighbour.word)\n")
    for word in ("old", "renewed"):
        script(f"word = {word!r}\n", name="neighbour.py")
        assert launch(main, 1)[0].stdout == f"{word}\n"


def test_the_environment_of_today_reaches_the_ranks_and_what_was_removed_does_not(
    script, monkeypatch
):
    show = script("import os\nprint(os.environ.get('FAULT_TEST_WORD'))\n")
    assert launch(show, 2)[1].stdout == "None\n"
    monkeypatch.setenv("FAULT_TEST_WORD", "today")
    assert launch(show, 2)[1].stdout == "today\n"
    assert launch(show, 2, env={"FAULT_TEST_WORD": "this run"})[1].stdout == "this run\n"
    monkeypatch.delenv("FAULT_TEST_WORD")
    assert launch(show, 2)[1].stdout == "None\n"


def test_the_folder_and_the_arguments_are_those_of_the_launch(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    show = script("import os, sys\nprint(os.getcwd(), __name__, *sys.argv[1:])\n")
    run = launch(show, 1, args=[1, "two", Path("three")])
    assert run[0].stdout == f"{tmp_path} __main__ 1 two three\n"


def test_what_is_drawn_without_a_seed_differs_between_ranks_and_runs(script):
    text = """
        import random
        import numpy
        import torch
        from ddp_lessons.worker import record
        record("drawn", python=random.random(), numpy=numpy.random.rand(), torch=torch.rand(1))
    """
    torch.manual_seed(1)  # what the kernel has done does not reach the ranks
    first, second = launch(script(text), 3), launch(script(text), 3)
    for name in ("python", "numpy", "torch"):
        assert len({str(value) for value in first.values(name) + second.values(name)}) == 6


def test_records_are_the_same_three_times_in_a_row(script):
    text = """
        import torch
        import torch.distributed as dist
        from ddp_lessons.worker import process_group, record

        with process_group():
            for step in range(3):
                x = torch.tensor([dist.get_rank() + 1.0, step])
                dist.all_reduce(x)
                record("step", step=step, sum=x)
    """
    runs = [launch(script(text), 2) for _ in range(3)]
    told = [[(r.rank, r.name, r.line, r.values) for r in run.records] for run in runs]
    assert told[0] == told[1] == told[2]
    assert len(told[0]) == 6


def test_a_matmul_in_the_kernel_does_not_hang_the_same_matmul_in_the_ranks(script):
    big = torch.ones(800, 800)
    assert (big @ big)[0, 0] == 800
    text = """
        import torch
        big = torch.ones(800, 800)
        print((big @ big)[0, 0].item())
    """
    assert [rank.stdout for rank in launch(script(text), 2, timeout=30)] == ["800.0\n"] * 2


def test_each_rank_gets_its_share_of_the_cores(script, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    text = """
        import os, torch
        from ddp_lessons.worker import record
        record("threads", asked=os.environ["OMP_NUM_THREADS"], used=torch.get_num_threads())
    """
    cores = len(os.sched_getaffinity(0))
    for size in (1, 2, cores + 1):
        run = launch(script(text), size)
        assert set(run.values("used")) == {max(1, cores // size)}
        assert set(run.values("asked")) == {str(max(1, cores // size))}
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert launch(script(text), 2).values("used") == [3, 3]


def test_a_worker_never_imports_what_only_a_notebook_needs(script):
    text = """
        import sys
        from torch.nn.parallel import DistributedDataParallel
        import torch
        from ddp_lessons.worker import process_group, record

        with process_group():
            DistributedDataParallel(torch.nn.Linear(1, 1))
            record("before", ranks=2)
        record("after", found=sorted({"matplotlib", "IPython", "ipywidgets"} & set(sys.modules)))
    """
    assert launch(script(text), 2).values("found") == [[], []]


def test_nothing_of_ours_listens_beyond_this_machine_and_the_server_has_one_thread(
    script, tmp_path
):
    text = """
        import os, sys, time
        from pathlib import Path
        import torch.distributed as dist
        from ddp_lessons.worker import process_group

        with process_group():
            dist.barrier()
            (Path(sys.argv[1]) / f"pid_{os.getpid()}_{os.getppid()}").touch()
            while not (Path(sys.argv[1]) / "seen").exists():
                time.sleep(0.01)
    """
    path = script(text)
    thread = threading.Thread(target=launch, args=(path, 2), kwargs={"args": [tmp_path]})
    thread.start()
    try:
        until(lambda: len(list(tmp_path.glob("pid_*"))) == 2)
        there = list(tmp_path.glob("pid_*"))
        pids = {int(pid) for file in there for pid in file.name.split("_")[1:]}
        server = int(there[0].name.split("_")[2])
        listening = {
            pid: [
                socket.laddr.ip
                for socket in psutil.Process(pid).net_connections(kind="inet")
                if socket.status == psutil.CONN_LISTEN
            ]
            for pid in pids | {os.getpid()}
        }
        threads = psutil.Process(server).num_threads()
    finally:
        (tmp_path / "seen").touch()
        thread.join()
    assert listening[os.getpid()]  # the store, so the question can be answered
    assert all(listening[pid] for pid in pids - {server})  # gloo, in each rank
    assert {ip for ips in listening.values() for ip in ips} <= {"127.0.0.1", "::ffff:127.0.0.1"}
    assert threads == 1


def test_a_held_default_port_is_in_nobodys_way(script):
    text = """
        import torch.distributed as dist
        from ddp_lessons.worker import process_group
        with process_group():
            dist.barrier()
            print("met")
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            held.bind(("", 29500))
            held.listen()
        except OSError:
            pass  # somebody holds it already, which is what is wanted
        assert [rank.stdout for rank in launch(script(text), 2)] == ["met\n"] * 2


def test_a_rank_that_calls_launch_is_told_that_it_would_never_end(script):
    text = """
        from ddp_lessons import launch
        launch(__file__, 2)
    """
    with pytest.raises(
        WorkerError,
        match="ranks 0 and 1 failed, line 2: RuntimeError: launch.. was called by a rank",
    ):
        launch(script(text), 2)
