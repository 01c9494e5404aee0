"""Workers forked from a small server that has torch imported already.

The server is the standard library's multiprocessing forkserver, so a rank costs a fork and not an
import of torch. Where a platform has none (Windows) the same code runs on spawn.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import util
from multiprocessing.connection import wait
from pathlib import Path

from ddp_lessons import bootstrap, folders, guard, lifeline
from ddp_lessons.engines import Job, server
from ddp_lessons.run import say

# torch's own modules and what a rank needs of ours, nothing of the reader's: what the server has
# imported is never read again from disk. torch._dynamo is here because the DDP constructor imports
# it, in a second; bootstrap because each rank would keep a copy of its own, of 2 MB.
TORCH = ["torch", "torch.distributed", "torch.nn.parallel", "torch._dynamo"]
PRELOAD = [server.__name__, *TORCH, bootstrap.__name__, "ddp_lessons.engines.frozen"]

LONGEST_TMPDIR = 60  # characters: a socket's path has at most 103 on macOS, 107 on Linux

METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
_lock = threading.Lock()


def prepare() -> None:
    """Start the server now. Returns at once; the server imports torch by itself meanwhile."""
    if multiprocessing.current_process().daemon:
        raise RuntimeError(
            "launch() was called in a worker of multiprocessing.Pool, and these may start no "
            "processes. Those of concurrent.futures.ProcessPoolExecutor may"
        )
    if METHOD != "forkserver":
        return
    from multiprocessing import forkserver

    with _lock, _server_environment():
        _shorten_socket_path()
        forkserver.set_forkserver_preload(PRELOAD)
        with _groups_of_their_own():
            forkserver.ensure_running()


def _forget_server() -> None:
    """In a child that this process forks: the server is not its own, and it may need one."""
    global _lock
    _lock = threading.Lock()  # the other threads, which may hold it, are not in the child
    if "multiprocessing.forkserver" in sys.modules:
        from multiprocessing import forkserver

        alive = forkserver._forkserver._forkserver_alive_fd
        if alive is not None:
            os.close(alive)
        forkserver._forkserver.__init__()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_server)


@contextmanager
def _groups_of_their_own() -> Iterator[None]:
    """Keep what multiprocessing starts here out of the kernel's process group.

    Stop interrupts that group, and would end a server that still imports torch, with a traceback in
    the notebook. And a kernel that is to end waits until no child of that group is left: 29 seconds
    for multiprocessing's resource tracker, which ends when its pipe does and on no signal.
    JupyterLab kills the kernel long before, and its folders would stay. A tracker that somebody
    else has started before is not moved.
    """
    before = util.spawnv_passfds

    def start(path: str, args: list[str], fds: Sequence[int]) -> int:
        process = subprocess.Popen(args, executable=path, pass_fds=fds, process_group=0)
        process.returncode = 0  # multiprocessing waits for it, not Popen
        return process.pid

    util.spawnv_passfds = start
    try:
        yield
    finally:
        util.spawnv_passfds = before


def _shorten_socket_path() -> None:
    """Where TMPDIR is too long for the name of a socket in it, let multiprocessing use /tmp."""
    config = multiprocessing.process.current_process()._config
    if len(tempfile.gettempdir()) > LONGEST_TMPDIR and config.get("tempdir") is None:
        config["tempdir"] = folder = tempfile.mkdtemp(prefix="pymp-", dir="/tmp")
        # Not atexit: a child that this process forks would take its folder away.
        util.Finalize(None, shutil.rmtree, [folder], {"ignore_errors": True}, exitpriority=-100)


@contextmanager
def _server_environment() -> Iterator[None]:
    """Keep the server single-threaded: a fork that copies a process with OpenMP or OpenBLAS threads
    copies none of the threads, and the child waits for them for ever. And tell it where to live."""
    home = _home()
    if not home.exists():
        home.mkdir()
        lifeline.hold(home)  # to the end of this process
    wanted = {"OPENBLAS_NUM_THREADS": "1", server.HOME: str(home)}
    # OpenMP reads this when the server loads it, so a rank's own environment comes too late.
    wanted["OMP_WAIT_POLICY"] = os.environ.get("OMP_WAIT_POLICY", "PASSIVE")
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _home() -> Path:
    """The server's own folder."""
    return folders.session() / "server"


@contextmanager
def _empty_main() -> Iterator[None]:
    """Stand an empty module in for `__main__`, or every rank would run the caller's file again."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def rank_env(rank: int, job: Job) -> dict[str, str]:
    """What torchrun would set for this rank on a single machine."""
    size = str(job.world_size)
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": size,
        "LOCAL_WORLD_SIZE": size,
        "GROUP_RANK": "0",
        "GROUP_WORLD_SIZE": "1",
        "ROLE_NAME": "default",
        "ROLE_RANK": str(rank),
        "ROLE_WORLD_SIZE": size,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(job.port),
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        # The launching process hosts the store, so rank 0 joins it as a client like all others.
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RUN_ID": job.folder.name,
    }


class Engine:
    """One multiprocessing.Process a rank, watched through their sentinels. Has no restarts and no
    second machine: launch() refuses those before."""

    held_up = ""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._processes: dict[int, multiprocessing.process.BaseProcess] = {}
        self._home = _home()  # to ask at the end of this process would make another one

    def start(self, deadline: float) -> None:
        prepare()
        context = multiprocessing.get_context(METHOD)
        for rank in range(self._job.world_size):
            if time.monotonic() > deadline:
                return
            env = self._job.machine_env(0) | rank_env(rank, self._job)
            process = context.Process(target=bootstrap.main, args=(str(self._job.folder), env))
            try:
                with _lock, _empty_main():
                    process.start()
            except (EOFError, ConnectionError):
                # Not again from here: the server may have forked this rank before it died.
                lost = f"the worker server ended while it started rank {rank}: launch once more"
                raise say(RuntimeError(lost)) from None
            self._processes[rank] = process

    def running(self) -> set[int]:
        return set(self._processes)

    def wait(self, seconds: float) -> dict[int, int | None]:
        ranks = {process.sentinel: rank for rank, process in self._processes.items()}
        ended = sorted(ranks[sentinel] for sentinel in wait(list(ranks), max(0, seconds)))
        processes = {rank: self._processes.pop(rank) for rank in ended}
        # Another thread that starts a process looks at all exit codes too, and a code that two
        # threads read at once comes out as 255.
        with _lock:
            codes = {rank: process.exitcode for rank, process in processes.items()}
        for process in processes.values():
            _kill_group(process)  # what the rank has left behind is still in the group that it led
        return codes

    def ask(self, ranks: Collection[int], number: int) -> None:
        for rank in self.running().intersection(ranks):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._processes[rank].pid, number)

    def stop(self) -> None:
        for process in self._processes.values():
            _kill_group(process)
        deadline = time.monotonic() + 10
        while self._processes and time.monotonic() < deadline:
            self.wait(deadline - time.monotonic())
        guard.sweep(self._home)


def _kill_group(process: multiprocessing.process.BaseProcess) -> None:
    if hasattr(os, "killpg"):
        try:
            os.killpg(process.pid, signal.SIGKILL)
            return
        except (ProcessLookupError, PermissionError):
            pass  # the rank has not made its group yet, or nothing of it is left
    process.kill()
