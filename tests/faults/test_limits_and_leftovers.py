"""Ranks that wait for ever end at the limit, and no run leaves a process behind."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest
from processes import gone, in_groups, told, until

from ddp_lessons import WorkerError, launch

LIMIT = 2  # seconds: time enough to reach the deadlock on a busy machine

DEADLOCK = """
    import os, signal, subprocess
    import torch
    import torch.distributed as dist
    from ddp_lessons.worker import process_group

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen(["sleep", "600"])
    with process_group():
        print("waiting", flush=True)
        dist.recv(torch.ones(1), src=1 - dist.get_rank())
"""


pytestmark = pytest.mark.usefixtures("warm")


def left(run) -> set[int]:
    return in_groups(rank.pid for rank in run if rank.pid)


def at_the_limit(*args, **options) -> WorkerError:
    with pytest.raises(WorkerError) as caught:
        launch(*args, **options)
    assert not left(caught.value.run)
    return caught.value


def test_ranks_that_wait_for_each_other_are_stopped_at_the_limit(script):
    error = at_the_limit(script(DEADLOCK), 2, timeout=LIMIT)
    assert error.rank is None
    assert str(error).startswith(
        "script.py: after 2 s, rank 0 waits in recv from rank 1, line 10; "
        "rank 1 waits in recv from rank 0, line 10."
    )
    assert [rank.stdout for rank in error.run] == ["waiting\n"] * 2
    assert [rank.exitcode for rank in error.run] == [None, None]


def test_the_limit_holds_while_ranks_are_still_being_started(script):
    error = at_the_limit(script("import time\ntime.sleep(600)\n"), 128, timeout=0.3)
    started = sum(rank.pid is not None for rank in error.run)
    assert error.rank is None
    assert str(error).startswith("script.py: the limit of 0.3 s came when ")
    assert started < 128 and not error.run.ok


@pytest.mark.slow
def test_torchrun_too_is_stopped_at_the_limit_with_all_that_its_ranks_started(script):
    with pytest.raises(WorkerError) as caught:
        launch(script(DEADLOCK), 2, engine="torchrun", timeout=20)
    assert caught.value.run[0].stdout == "waiting\n"
    gone(lambda: left(caught.value.run), 2)


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("raise SystemExit(0)", "Rank 1 left early with exit code 0, line 3"),
        ("pass", "Rank 1 came to the end of the script"),
    ],
)
def test_a_rank_that_never_joins_is_named_at_the_limit_with_how_it_ended(script, end, said):
    text = f"""
        import os
        if os.environ["RANK"] == "1":
            {end}
        else:
            import torch.distributed as dist
            dist.init_process_group("gloo")
    """
    error = at_the_limit(script(text), 2, timeout=LIMIT)
    assert error.rank == 1
    first, *rest = str(error).splitlines()
    assert first.startswith("script.py: after 2 s, rank 0 waits in init_process_group, line 6; ")
    assert f"  {said}, without joining the process group." in rest


def test_a_limit_without_end_is_allowed(script):
    assert launch(script("print('done')\n"), 1, timeout=float("inf"))[0].stdout == "done\n"


def test_what_a_finished_rank_has_left_running_is_ended_too(script):
    text = """
        import os, subprocess
        from ddp_lessons.worker import record
        record("child", pid=subprocess.Popen(["sleep", "600"]).pid)
        if os.fork() == 0:
            import time
            time.sleep(600)
    """
    run = launch(script(text), 2)
    gone(lambda: left(run), 2)
    assert not any(told(pid) for pid in run.values("pid"))


AWAY = """
    import subprocess, sys
    import torch.distributed as dist
    from ddp_lessons.worker import process_group, record
    # One with its own session, and one whose parent has ended, too.
    apart = subprocess.Popen(["sleep", "600"], start_new_session=True)
    told = subprocess.run(["sh", "-c", "setsid sleep 600 > /dev/null 2>&1 & echo $!"],
                          capture_output=True, text=True)
    record("away", apart=apart.pid, orphan=int(told.stdout))
    with process_group():
        dist.barrier()
    exec(sys.argv[1])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux holds them")
@pytest.mark.parametrize("engine", ["forkserver", pytest.param("torchrun", marks=pytest.mark.slow)])
@pytest.mark.parametrize("end", ["pass", "__import__('os')._exit(3)"])
def test_a_child_in_a_session_of_its_own_ends_with_its_rank(script, end, engine):
    try:
        run = launch(script(AWAY), 2, args=[end], engine=engine)
    except WorkerError as error:
        run = error.run
    pids = run.values("apart") + run.values("orphan")
    assert len(set(pids)) == 4
    assert not any(told(pid) for pid in pids)


def test_a_child_that_lost_its_parent_lives_as_long_as_its_rank_though_other_runs_end(script):
    hello = script("print('hello')\n", name="hello.py")
    text = """
        import os, subprocess, sys, time
        from ddp_lessons.worker import record
        told = subprocess.run(["sh", "-c", "setsid sleep 600 > /dev/null 2>&1 & echo $!"],
                              capture_output=True, text=True)
        open(sys.argv[1] + "/there", "w").close()
        while not os.path.exists(sys.argv[1] + "/go"):
            time.sleep(0.01)
        record("orphan", alive=os.path.exists(f"/proc/{int(told.stdout)}/exe"))
    """
    path, runs = script(text), []
    folder = path.parent
    thread = threading.Thread(target=lambda: runs.append(launch(path, 1, args=[folder])))
    thread.start()
    until(lambda: (folder / "there").exists())
    launch(hello, 2)
    (folder / "go").touch()
    thread.join()
    assert runs[0].values("alive") == [True]


def test_a_data_loader_with_workers_works_and_leaves_nothing_behind(script):
    text = """
        import torch
        from torch.utils.data import DataLoader, TensorDataset
        from ddp_lessons.worker import record

        data = TensorDataset(torch.arange(8.0))
        loader = DataLoader(data, batch_size=2, num_workers=2, persistent_workers=True)
        record("read", sum=sum(batch.sum().item() for (batch,) in loader))
    """
    run = launch(script(text), 2)
    assert run.values("sum") == [28.0, 28.0]
    assert [rank.stderr for rank in run] == ["", ""]
    gone(lambda: left(run), 2)


def test_a_rank_ends_as_python_does_threads_first_then_what_was_registered_with_atexit(script):
    text = """
        import atexit, ctypes, threading, time
        from concurrent.futures import ThreadPoolExecutor

        pool = ThreadPoolExecutor(2)  # never shut down: its threads are idle, and not daemons
        pool.submit(print, "in the pool").result()
        threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
        atexit.register(print, "atexit")
        ctypes.CDLL(None).printf(b"from C\\n")
        print("last line")
    """
    (rank,) = launch(script(text), 1, timeout=20)
    python = ["in the pool", "last line", "thread", "atexit"]
    assert [line for line in rank.stdout.splitlines() if line != "from C"] == python
    assert "from C\n" in rank.stdout


def test_ten_launches_leave_no_file_descriptor_and_no_thread_behind(script):
    hello = script("print('hello')\n")
    launch(hello, 2)
    files, threads = open_files(), threading.active_count()
    for _ in range(10):
        launch(hello, 2)
    assert open_files() <= files
    assert threading.active_count() <= threads


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
