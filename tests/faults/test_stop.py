"""The Stop button, on a real kernel: KeyboardInterrupt, no process left, the next launch works."""

from __future__ import annotations

import time

import pytest
from processes import Kernel, gone, kernel, told, until

from ddp_lessons.guard import parent

AT_ONCE = 15.0  # seconds; the design says 0.5, and a loaded machine needs room

WAITS = """
    import os, signal, subprocess, sys
    from pathlib import Path
    import torch.distributed as dist
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    dist.init_process_group("gloo")
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    (Path(sys.argv[1]) / f"{sys.argv[2]}_{dist.get_rank()}").touch()
    if dist.get_rank() == 1:
        dist.barrier()
    else:
        dist.recv(__import__("torch").ones(1), 1)
"""


@pytest.fixture(scope="module")
def started():
    with kernel() as started:
        yield started


def stop(started: Kernel, cell: str) -> str:
    """Press Stop on a running cell; returns its message. Nothing but the server may be left."""
    return press(started, cell)["evalue"]


def press(started: Kernel, cell: str) -> dict:
    """The same; returns the whole reply."""
    began = time.monotonic()
    started.interrupt()
    reply = started.reply(cell)
    assert time.monotonic() - began < AT_ONCE
    assert reply["ename"] == "KeyboardInterrupt"
    gone(lambda: workers(started), AT_ONCE)
    return reply


def workers(started: Kernel) -> set[int]:
    """The living ranks, agents and children of theirs: all but the server, its guard and
    multiprocessing's tracker, which stay for the next launch."""
    guards = servers(started)
    stays = {pid for pid in started.others() if serves(pid) and parent(pid) in guards}
    stays |= {pid for pid in started.others() if tracks(pid)}
    return started.others() - guards - stays


def works(started: Kernel, script) -> None:
    """The next launch answers, and nothing else is said, by the server's stderr for example."""
    path = script("print('hello')\n", name="next.py")
    said = started.run(f"print(launch({str(path)!r}, 2), end='')")
    assert said == "next.py on 2 ranks: ok\nrank 0 | hello\nrank 1 | hello"


def test_stop_while_torch_is_being_imported_leaves_a_kernel_that_can_launch(started, script):
    path = script("print('hello')\n")
    cell = started.begin(f"import sys\nfrom ddp_lessons import launch\nlaunch({str(path)!r}, 2)")
    until(lambda: loads_torch(started.pid))
    before = servers(started)
    assert stop(started, cell) == "no rank had started"
    works(started, script)
    assert servers(started) == before  # Stop does not reach it


def servers(started: Kernel) -> set[int]:
    """The server as the kernel knows it: its guard, which ends with it."""
    return {pid for pid in started.others() if serves(pid) and parent(pid) == started.pid}


def serves(pid: int) -> bool:
    return "multiprocessing.forkserver" in " ".join(told(pid))


def tracks(pid: int) -> bool:
    return "multiprocessing.resource_tracker" in " ".join(told(pid))


def loads_torch(pid: int) -> bool:
    with open(f"/proc/{pid}/maps") as maps:
        return "libtorch" in maps.read()


@pytest.mark.parametrize("engine", ["forkserver", "torchrun"])
def test_stop_in_the_middle_of_a_launch_says_how_many_were_stopped(
    started, script, tmp_path, engine
):
    folder = tmp_path / "there"
    folder.mkdir()
    path, options = str(script(WAITS)), f"engine={engine!r}, args=[{str(folder)!r}, {engine!r}]"
    cell = started.begin(f"from ddp_lessons import launch\nlaunch({path!r}, 2, {options})")
    until(lambda: len(list(folder.iterdir())) == 2)
    until(lambda: len(workers(started)) >= 4)  # each with a child of its own
    assert stop(started, cell) == "2 ranks stopped"
    works(started, script)


def test_stop_says_where_each_rank_stood(started, script, tmp_path):
    folder = tmp_path / "there"
    folder.mkdir()
    path = str(script(WAITS))
    cell = started.begin(
        f"from ddp_lessons import launch\nlaunch({path!r}, 2, args=[{str(folder)!r}, 'stood'])"
    )
    until(lambda: len(list(folder.iterdir())) == 2)
    # A barrier on rank 1 and a recv on rank 0 do not meet: each waits for a call of its own.
    said = "\n".join(press(started, cell)["traceback"])
    assert "Where the ranks stood:\nrank 0 waits in recv from rank 1, line 11.\n" in said
    assert "rank 1 waits in barrier, line 9." in said


def test_stop_while_ranks_are_being_started_leaves_none(started, script):
    path = script("import time\ntime.sleep(600)\n")
    cell = started.begin(f"from ddp_lessons import launch\nlaunch({str(path)!r}, 64)")
    until(lambda: len(workers(started)) > 4)
    assert stop(started, cell).endswith("ranks stopped")
    works(started, script)


# Stop comes a second time at the worst moment: as soon as the engine begins to clean up.
AGAIN = """
import importlib, signal, time
from ddp_lessons import launch
engine = importlib.import_module("ddp_lessons.engines.{engine}").Engine
clean_up = engine.stop
def stop(self):
    engine.stop = clean_up
    signal.raise_signal(signal.SIGINT)
    for _ in range(100):
        time.sleep(0.001)
    clean_up(self)
engine.stop = stop
launch({path!r}, 2, engine={engine!r}, args=[{folder!r}, {engine!r}])
"""


@pytest.mark.parametrize("engine", ["forkserver", pytest.param("torchrun", marks=pytest.mark.slow)])
def test_a_second_stop_does_not_interrupt_the_clean_up(started, script, tmp_path, engine):
    folder = tmp_path / "there"
    folder.mkdir()
    cell = started.begin(AGAIN.format(engine=engine, path=str(script(WAITS)), folder=str(folder)))
    until(lambda: len(list(folder.iterdir())) == 2)
    assert stop(started, cell) == "2 ranks stopped"
    works(started, script)
