"""engine="python": one process runs the script, and the script starts its ranks itself."""

from __future__ import annotations

import os
import signal

import pytest
from processes import gone, kernel, marked, told, until

from ddp_lessons import WorkerError, launch

# The body of a rank's function comes between the two.
HEAD = """
    import os, signal, socket, sys, time
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
    from torch.distributed import all_reduce
    from ddp_lessons.worker import record


    def demo(rank, world_size, port):
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
        dist.init_process_group("gloo", rank=rank, world_size=world_size)
"""
TAIL = """

    if __name__ == "__main__":
        world_size = int(os.environ["WORLD_SIZE"])
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        mp.spawn(demo, args=(world_size, port), nprocs=world_size)
"""
SUM = """
        x = torch.tensor([rank + 1.0])
        all_reduce(x)
        print(f"rank {rank} has {x.item()}, RANK is {os.environ.get('RANK')}")
        record("sum", sum=x.item())
        dist.destroy_process_group()
"""


def spawns(body: str, tail: str = TAIL) -> str:
    return HEAD.rstrip() + body.rstrip() + "\n" + tail


def failing(path, world_size: int = 2, timeout: float = 60) -> WorkerError:
    with pytest.raises(WorkerError) as caught:
        launch(path, world_size, engine="python", timeout=timeout)
    return caught.value


def test_each_spawned_rank_has_its_own_records_output_calls_and_end(script):
    told = '    print("all have ended")\n'
    path = script(spawns(SUM, TAIL.rstrip() + "\n    " + told))
    run = launch(path, 2, engine="python")
    assert run.ok
    assert run.values("sum") == [3.0, 3.0]
    assert [record.rank for record in run.records] == [0, 1]
    assert [rank.stdout for rank in run] == [f"rank {r} has 3.0, RANK is None\n" for r in (0, 1)]
    # Also by a name that the script had imported before its function ran.
    assert [(call.rank, call.op, call.line) for call in run.calls] == [
        (0, "all_reduce", 13),
        (1, "all_reduce", 13),
    ]
    assert [rank.exitcode for rank in run] == [0, 0]
    assert run.starter.stdout == "all have ended\n"
    assert run.starter.came == (0, 1)
    assert {rank.parent for rank in run} == {run.starter.pid}
    assert {rank.above[-1].pid for rank in run} == {os.getpid()}


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_a_rank_may_be_started_by_hand_and_in_other_ways(script, method):
    start = f"""

    if __name__ == "__main__":
        mp.set_start_method("{method}")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        ranks = [mp.Process(target=demo, args=(rank, 2, port)) for rank in range(2)]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
        print([rank.exitcode for rank in ranks])
    """
    run = launch(script(spawns(SUM, start)), 2, engine="python")
    assert run.ok
    assert run.values("sum") == [3.0, 3.0]
    assert [call.op for call in run.calls] == ["all_reduce"] * 2
    assert run.starter.stdout == "[0, 0]\n"


def test_a_script_that_runs_torchrun_has_that_ones_workers_as_its_ranks(script):
    script(
        """
        import sys
        from ddp_lessons.worker import process_group, record
        import torch
        import torch.distributed as dist

        with process_group():
            x = torch.tensor([dist.get_rank() + 1.0])
            dist.all_reduce(x)
            record("sum", sum=x.item(), arguments=sys.argv[1:])
        """,
        "ranks.py",
    )
    start = """
        import subprocess, sys
        from pathlib import Path
        ranks = str(Path(__file__).with_name("ranks.py"))
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        done = subprocess.run([*torchrun, "--nproc-per-node=2", ranks, "an argument"])
        print(done.returncode)
    """
    run = launch(script(start), 2, engine="python")
    assert run.values("sum") == [3.0, 3.0]
    assert run.values("arguments") == [["an argument"]] * 2
    assert [call.line for call in run.calls] == [8, 8]
    assert run.starter.stdout == "0\n"


def test_what_a_rank_starts_is_no_rank(script):
    body = (
        SUM.rstrip()
        + """
        child = mp.get_context("spawn").Process(target=print, args=(rank, "from a child"))
        child.start()
        child.join()
        from torch.utils.data import DataLoader
        print(len(list(DataLoader(range(4), num_workers=1, multiprocessing_context="fork"))))
"""
    )
    run = launch(script(spawns(body)), 2, engine="python")
    assert run.starter.came == (0, 1)
    for rank in run:
        assert rank.stdout.splitlines()[1:] == [f"{rank.rank} from a child", "4"]


def test_a_spawned_rank_that_raises_is_named_with_its_line(script):
    body = """
        if rank == 1:
            raise ValueError("no such file")
        dist.barrier()
    """
    error = failing(script(spawns(body)))
    assert error.rank == 1
    assert str(error).splitlines()[:3] == [
        "script.py: rank 1 failed first, line 13: ValueError: no such file",
        "  script.py, line 13, in demo",
        '    raise ValueError("no such file")',
    ]


def test_a_spawned_rank_that_is_killed_is_named_with_the_signal(script):
    body = """
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(600)
    """
    error = failing(script(spawns(body)))
    assert error.rank == 1
    assert "rank 1 was killed by SIGKILL (signal 9)" in str(error).splitlines()[0]


def test_a_spawned_rank_that_leaves_by_os_exit_is_never_a_success(script):
    for code in (0, 3):
        body = f"""
        if rank == 1:
            os._exit({code})
        time.sleep(600)
    """
        error = failing(script(spawns(body)))
        assert error.rank == 1
        assert str(error).startswith(f"script.py: rank 1 left early with exit code {code}, before")


def test_a_spawned_rank_that_is_interrupted_is_never_a_success(script):
    body = """
        dist.barrier()  # rank 0 holds the store, and is not to go before rank 1 has joined
        if rank == 1:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)
    """
    error = failing(script(spawns(body)))
    assert error.rank == 1
    first = str(error).splitlines()[0]
    assert first.startswith("script.py: rank 1 failed first, line 1")
    assert first.endswith("KeyboardInterrupt")


def test_the_death_of_the_scripts_own_process_is_not_taken_for_an_end_of_the_ranks(script):
    body = """
        if rank == 1:
            os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(600)
    """
    error = failing(script(spawns(body)))
    assert str(error).startswith(
        "script.py: the script's own process was killed, or left by os._exit(), while its ranks "
        "were at work, and they ended with it."
    )
    assert not error.run.ok


def test_a_script_that_is_cut_off_before_or_after_its_ranks_is_told_so(script):
    before = failing(script("import os\nos._exit(0)\n"))
    assert "or left by os._exit(), before it had started a rank." in str(before)
    tail = TAIL.rstrip() + "\n        os.kill(os.getpid(), signal.SIGKILL)\n"
    after = failing(script(spawns(SUM, tail)))
    assert str(after) == (
        "script.py: all ranks came to their end, and the script's own process ended early."
    )
    assert after.run.values("sum") == [3.0, 3.0]


def test_a_function_that_cannot_be_pickled_is_named_with_the_way_out(script):
    tail = """

    if __name__ == "__main__":
        mp.spawn(lambda rank: None, nprocs=2)
    """
    first, *_ = str(failing(script(spawns(SUM, tail)))).splitlines()
    assert "the function <lambda>" in first
    assert "Define it there with def" in first


def test_spawned_ranks_that_wait_for_ever_are_named_at_the_limit(script):
    body = """
        if rank == 0:
            dist.barrier()
        time.sleep(600)
    """
    error = failing(script(spawns(body)), timeout=15)
    assert "rank 0 waits in barrier" in str(error).splitlines()[0]
    assert "line 13" in str(error)


def test_another_number_of_ranks_than_launch_was_told_of_is_an_error(script):
    body = SUM.replace("all_reduce(x)", "dist.barrier()")
    path = script(spawns(body, TAIL.replace('int(os.environ["WORLD_SIZE"])', "3")))
    error = failing(path)
    assert str(error) == (
        "script.py: the script started 3 ranks (0, 1, 2), and launch() was told of 2. Give both "
        "the same number: the script finds launch()'s as WORLD_SIZE in its environment."
    )


def test_a_script_that_starts_no_rank_is_an_error(script):
    assert "the script started no rank" in str(failing(script("print('hello')")))


@pytest.mark.parametrize("where", ["before", "after"])
def test_an_error_in_the_scripts_own_process_is_named_with_its_line(script, where):
    tail = TAIL.replace("world_size = int", "1 / 0; world_size = int")
    if where == "after":
        tail = TAIL.rstrip() + "\n        1 / 0\n"
    first, *_ = str(failing(script(spawns(SUM, tail)))).splitlines()
    assert first.startswith("script.py: the script's own process failed ")
    assert f"{'before' if where == 'before' else 'after'} it had started" in first
    assert first.endswith("ZeroDivisionError: division by zero")


def test_a_script_without_a_main_guard_is_told_so_with_its_line(script):
    tail = """
    mp.spawn(demo, args=(2, 0), nprocs=2)
    """
    first, *_ = str(failing(script(spawns(SUM, tail)))).splitlines()
    assert first.startswith("script.py: rank")
    assert "the file starts processes while it is imported" in first
    assert "line 18: RuntimeError" in first


def test_the_script_finds_nothing_of_torchruns_but_the_world_size(script, monkeypatch):
    for name in ("RANK", "LOCAL_RANK", "MASTER_ADDR", "TORCHELASTIC_RUN_ID"):
        monkeypatch.setenv(name, "7")
    tail = '    print(sorted(n for n in os.environ if n.startswith(("RANK", "LOCAL", "MASTER", '
    tail += '"WORLD", "TORCHE"))))\n'
    head = TAIL.replace("mp.spawn", tail.strip() + "\n        mp.spawn")
    run = launch(script(spawns(SUM, head)), 2, engine="python")
    assert run.starter.stdout == "['WORLD_SIZE']\n"


def test_a_module_that_python_reads_at_its_start_is_still_read(script, tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text("import os\nos.environ['CUSTOM'] = 'yes'\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    body = SUM.rstrip() + '\n        record("custom", custom=os.environ.get("CUSTOM"))\n'
    assert launch(script(spawns(body)), 2, engine="python").values("custom") == ["yes"] * 2


STUBBORN = """
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        import subprocess
        subprocess.Popen(["sleep", "600"], start_new_session=True)
        print("here", flush=True)
        time.sleep(600)
"""


def test_no_process_is_left_when_the_kernel_is_killed_or_stop_is_pressed(script):
    path = script(spawns(STUBBORN))
    with kernel() as started:
        started.run(f"from ddp_lessons import launch; launch({str(script('', 'warm.py'))!r})")
        for end in ("interrupt", "kill"):
            before = started.others()
            cell = started.begin(f"launch({str(path)!r}, 2, engine='python', timeout=600)")
            # The script's process and its guard, two ranks, and the sleep of each.
            until(lambda before=before: len(sleeping(started.mark, before)) == 2)
            if end == "interrupt":
                started.interrupt()
                reply = started.reply(cell)
                assert (reply["ename"], reply["evalue"]) == ("KeyboardInterrupt", "2 ranks stopped")
                gone(lambda before=before: started.others() - before, 5)
            else:
                os.kill(started.pid, signal.SIGKILL)
                gone(lambda: marked(started.mark), 5)


def sleeping(mark: str, before: set[int]) -> set[int]:
    found = marked(mark) - before
    return {pid for pid in found if told(pid)[:1] == ["sleep"]}
