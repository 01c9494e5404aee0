"""Several launches at once, from threads and from several processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from processes import GENEROUS, gone, kernel, marked

from ddp_lessons import WorkerError, launch

SUM = """
    import sys
    import torch
    import torch.distributed as dist
    from ddp_lessons.worker import process_group, record

    x = torch.tensor([float(sys.argv[1])])
    with process_group():
        dist.all_reduce(x)
        record("sum", sum=x.item())
"""

# A file as a reader writes it: no main guard, launches on two threads, a failing one at last.
FILE = """
    import sys
    from concurrent.futures import ThreadPoolExecutor
    from ddp_lessons import WorkerError, launch

    print("once")
    with ThreadPoolExecutor(2) as pool:
        runs = pool.map(lambda number: launch("sum.py", 2, args=[number]), (1, 2))
        print([run.values("sum") for run in runs])
    try:
        launch("sum.py", 2, args=["nonsense"])
    except WorkerError as error:
        print(str(error).splitlines()[0])
"""


@pytest.fixture
def mark(monkeypatch) -> str:
    mark = f"fault-test-{uuid.uuid4()}"
    monkeypatch.setenv("FAULT_TEST", mark)
    return mark


def test_two_launches_on_two_threads_each_get_their_own_ranks(script):
    path, results = script(SUM), {}

    def work(number: int) -> None:
        for _ in range(5):
            results.setdefault(number, []).append(launch(path, 2, args=[number]).values("sum"))

    threads = [threading.Thread(target=work, args=[number]) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {1: [[2.0, 2.0]] * 5, 2: [[4.0, 4.0]] * 5}


def test_a_failing_launch_does_not_disturb_the_one_beside_it(script):
    slow = script("import time\ntime.sleep(1)\nprint('done')\n", name="slow.py")
    done = []
    thread = threading.Thread(target=lambda: done.append(launch(slow, 2)))
    thread.start()
    with pytest.raises(WorkerError):
        launch(script("raise ValueError('alone')\n"), 2)
    thread.join()
    assert [rank.stdout for rank in done[0]] == ["done\n"] * 2


def test_eight_launches_at_once_from_four_files_without_a_main_guard(script, tmp_path, mark):
    script(SUM, name="sum.py")
    file = script(FILE, name="file.py")
    options = {"cwd": tmp_path, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    # One of them on a host whose name does not resolve: gloo would ask for it, and warn.
    commands = [[sys.executable, file.name]] * 3 + [renamed(file.name)]
    processes = [subprocess.Popen(command, **options) for command in commands]
    for process in processes:
        out, err = process.communicate(timeout=GENEROUS * 2)
        assert err == ""
        assert out.splitlines() == [
            "once",
            "[[2.0, 2.0], [4.0, 4.0]]",
            "sum.py: ranks 0 and 1 failed, line 6: ValueError: could not convert string to float: "
            "'nonsense'",
        ]
    gone(lambda: marked(mark) - {os.getpid()}, 2)


FORKS = """
    import multiprocessing, os, sys
    from concurrent.futures import ProcessPoolExecutor
    from ddp_lessons import launch

    def work(number):
        return launch("sum.py", 2, args=[number]).values("sum")

    print(work(1))
    if os.fork() == 0:
        print(work(2), flush=True)
        sys.exit(0)
    assert os.wait()[1] == 0
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        print(pool.submit(work, 3).result())
    print(work(4))
    with multiprocessing.get_context("fork").Pool(1) as pool:
        try:
            pool.apply(work, (5,))
        except RuntimeError as error:
            print(error)
"""


def test_a_child_that_a_program_forks_after_a_launch_can_launch_too(script, tmp_path, mark):
    script(SUM, name="sum.py")
    file = script(FORKS, name="forks.py")
    done = subprocess.run(
        [sys.executable, "-u", file], cwd=tmp_path, capture_output=True, text=True, timeout=GENEROUS
    )
    assert done.stderr == ""
    *sums, refused = done.stdout.splitlines()
    assert sums == [f"[{2 * n}.0, {2 * n}.0]" for n in (1, 2, 3, 4)]
    assert refused.startswith("launch() was called in a worker of multiprocessing.Pool")
    gone(lambda: marked(mark) - {os.getpid()}, 2)


TWICE = """
from concurrent.futures import ThreadPoolExecutor
from ddp_lessons import launch
with ThreadPoolExecutor(2) as pool:
    print([r.values("sum") for r in pool.map(lambda n: launch({path!r}, 2, args=[n]), (1, 2))])
"""


@pytest.mark.slow
def test_eight_launches_at_once_from_four_kernels(script):
    cell = TWICE.format(path=str(script(SUM)))
    with ExitStack() as stack:
        kernels = [stack.enter_context(kernel()) for _ in range(4)]
        with ThreadPoolExecutor(4) as pool:
            said = list(pool.map(lambda one: one.run(cell), kernels))
        assert said == ["[[2.0, 2.0], [4.0, 4.0]]\n"] * 4


def renamed(file: str) -> list[str]:
    """The command that runs a file under another host name, where this user may give one."""
    rename = ["unshare", "--uts", "sh", "-c", 'hostname no-such-host.invalid && exec "$@"', "sh"]
    if (
        shutil.which("unshare")
        and not subprocess.run([*rename, "true"], capture_output=True).returncode
    ):
        return [*rename, sys.executable, file]
    return [sys.executable, file]
