"""The kernel is killed, restarted or shut down in the middle of launches: nothing outlives it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from processes import GENEROUS, Kernel, gone, in_groups, kernel, marked, told, until

from ddp_lessons import launch

SOON = 10.0  # seconds; the design says 2, and a loaded machine needs room

# Ranks that are as hard to end as they can be: deaf, with a child, with one in a session of its own
# and one that has lost its parent. Each says in the folder args[0] that it is there.
STUBBORN = """
    import os, re, signal, subprocess, sys, time
    from pathlib import Path
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    subprocess.Popen([sys.executable, "-c", child])
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    subprocess.run(["sh", "-c", "setsid sleep 600 & exit"])
    (Path(sys.argv[1]) / f"{sys.argv[2]}_{os.environ['RANK']}").write_text(str(os.getpid()))
    if os.environ["RANK"] == "1":
        re.match(r"(a+)+$", "a" * 60 + "b")  # holds the GIL for ever
    time.sleep(600)
"""

LAUNCH = """
import threading
from ddp_lessons import launch
def start(engine):
    launch({script!r}, 2, engine=engine, args=[{folder!r}, engine], timeout=600)
"""

WAIT = """
import time
from pathlib import Path
while len([path for path in Path({folder!r}).iterdir() if path.read_text()]) < 2:
    time.sleep(0.01)
"""


def code(script, folder: Path, engines: tuple[str, ...]) -> str:
    """A cell that launches under each engine, on threads of its own; `start` is there to call."""
    folder.mkdir()
    cell = LAUNCH.format(script=str(script(STUBBORN)), folder=str(folder))
    for engine in engines:
        cell += f"threading.Thread(target=start, args=[{engine!r}], daemon=True).start()\n"
    return cell


def wait_for_ranks(started: Kernel, folder: Path, engines: int) -> None:
    """Until two ranks of each engine are there, each with three children."""
    until(lambda: len(list(folder.iterdir())) == 2 * engines)
    assert len(started.others()) >= 8 * engines


def test_no_worker_survives_a_kernel_kill(script, tmp_path):
    folder = tmp_path / "there"
    with kernel() as started:
        started.begin(code(script, folder, ("torchrun",)) + "start('forkserver')")
        wait_for_ranks(started, folder, engines=2)
        os.kill(started.pid, signal.SIGKILL)
        gone(lambda: marked(started.mark), SOON)


def test_no_worker_survives_a_kernel_restart_and_the_next_launch_works(script, tmp_path):
    folder, hello = tmp_path / "there", script("print('hello')\n", name="hello.py")
    with kernel() as started:
        started.begin(code(script, folder, ()) + "start('forkserver')")
        wait_for_ranks(started, folder, engines=1)
        before = marked(started.mark)
        started.restart()
        gone(lambda: before & marked(started.mark), SOON)
        started.wait_until_ready()
        said = started.run(f"from ddp_lessons import launch\nprint(launch({str(hello)!r}, 1))")
        assert said == "hello.py on 1 rank: ok\nrank 0 | hello\n"


def test_no_worker_survives_a_normal_exit_of_the_kernel(script, tmp_path):
    folder = tmp_path / "there"
    with kernel() as started:
        started.run(code(script, folder, ("forkserver",)))
        wait_for_ranks(started, folder, engines=1)
        pid = started.pid
        started.shut_down()
        until(lambda: pid not in marked(started.mark))
        gone(lambda: marked(started.mark), SOON)


def test_a_kernel_that_is_shut_down_waits_for_nothing_of_ours_and_takes_its_folder_along(script):
    hello = script("print('hello')\n")
    with kernel() as started:
        started.run(f"from ddp_lessons import launch\nlaunch({str(hello)!r}, 1)")
        # ipykernel waits until its process group is empty, and JupyterLab kills it meanwhile.
        assert in_groups({started.pid}) == {started.pid}
        folder = Path(
            started.run("from ddp_lessons import folders\nprint(folders.session())").strip()
        )
        assert folder.is_dir()
        started.shut_down()
        assert not folder.exists()


def test_a_program_that_ends_while_a_thread_launches_does_not_wait_for_the_ranks(script, tmp_path):
    folder = tmp_path / "there"
    text = code(script, folder, ("forkserver",)) + WAIT.format(folder=str(folder))
    file = script(text, name="file.py")
    done = subprocess.run([sys.executable, str(file)], timeout=GENEROUS, stderr=subprocess.DEVNULL)
    assert done.returncode == 0
    pids = {int(path.read_text()) for path in folder.iterdir()}
    gone(lambda: in_groups(pids), SOON)


@pytest.mark.parametrize("role", ["agent", pytest.param("rank", marks=pytest.mark.slow)])
def test_nothing_survives_a_kernel_kill_while_torchrun_is_starting(role, script, tmp_path):
    folder = tmp_path / "there"
    with kernel() as started:
        started.begin(code(script, folder, ()) + "start('torchrun')")
        until(lambda: acting_as(started, role))
        os.kill(started.pid, signal.SIGKILL)
        gone(lambda: marked(started.mark), SOON)
        assert not list(folder.iterdir())  # it was early enough to be a test


def acting_as(started: Kernel, role: str) -> list[int]:
    """The kernel's processes that torchrun's engine has started as "agent" or as "rank"."""
    return [
        pid
        for pid in started.others()
        if ("ddp_lessons.bootstrap", role) in list(pairwise(told(pid)))[:4]
    ]


def test_the_next_launch_works_when_the_server_was_killed(script):
    hello = script("print('hello')\n")
    server = launch(hello, 1)[0].parent
    guard = psutil.Process(server).ppid()
    os.kill(server, signal.SIGKILL)
    until(lambda: os.waitid(os.P_PID, guard, os.WEXITED | os.WNOHANG | os.WNOWAIT))
    assert launch(hello, 2)[1].stdout == "hello\n"
