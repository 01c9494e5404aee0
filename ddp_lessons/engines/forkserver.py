"""Workers forked from a small server that has torch imported already.

The server is the standard library's multiprocessing forkserver, so a rank costs a fork and not an
import of torch. Where a platform has none (Windows) the same code runs on spawn.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import types
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait

from ddp_lessons import bootstrap
from ddp_lessons.engines import Job

# Only torch's own modules: what the server has imported is never read again from disk.
# torch._dynamo is here because the DDP constructor imports it, which takes a second.
PRELOAD = ["torch", "torch.distributed", "torch.nn.parallel", "torch._dynamo"]

METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
_lock = threading.Lock()


def prepare() -> None:
    """Start the server now. Returns at once; the server imports torch by itself meanwhile."""
    if METHOD != "forkserver":
        return
    from multiprocessing import forkserver

    with _lock, _server_environment():
        forkserver.set_forkserver_preload(PRELOAD)
        forkserver.ensure_running()


@contextmanager
def _server_environment() -> Iterator[None]:
    """Keep the server single-threaded: a fork that copies a process with OpenMP or OpenBLAS threads
    copies none of the threads, and the child waits for them for ever."""
    name = "OPENBLAS_NUM_THREADS"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@contextmanager
def _empty_main() -> Iterator[None]:
    """Stand an empty module in for `__main__`, or every rank would run the caller's file again."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def start(job: Job) -> ForkedWorkers:
    """Fork the ranks. Has no restarts and no second machine: launch() refuses those before."""
    prepare()
    context = multiprocessing.get_context(METHOD)
    workers = ForkedWorkers()
    try:
        for rank in range(job.world_size):
            env = job.machine_env(0) | rank_env(rank, job)
            process = context.Process(target=bootstrap.main, args=(str(job.folder), env))
            with _lock, _empty_main():
                process.start()
            workers.add(rank, process)
    except BaseException:
        workers.stop()
        raise
    return workers


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


class ForkedWorkers:
    """One multiprocessing.Process a rank, watched through their sentinels."""

    def __init__(self) -> None:
        self._all: dict[int, multiprocessing.process.BaseProcess] = {}
        self._running: set[int] = set()

    def add(self, rank: int, process: multiprocessing.process.BaseProcess) -> None:
        self._all[rank] = process
        self._running.add(rank)

    def running(self) -> set[int]:
        return set(self._running)

    def wait(self, seconds: float) -> dict[int, int | None]:
        sentinels = {self._all[rank].sentinel: rank for rank in self._running}
        ended = sorted(sentinels[s] for s in wait(list(sentinels), timeout=max(0, seconds)))
        self._running.difference_update(ended)
        return {rank: self._all[rank].exitcode for rank in ended}

    def stop(self) -> None:
        # Ended ranks too: their children, if any, are still in the group that the rank led.
        for process in self._all.values():
            _kill_group(process)
        deadline = time.monotonic() + 10
        while self._running and time.monotonic() < deadline:
            self.wait(deadline - time.monotonic())


def _kill_group(process: multiprocessing.process.BaseProcess) -> None:
    if hasattr(os, "killpg"):
        try:
            os.killpg(process.pid, signal.SIGKILL)
            return
        except (ProcessLookupError, PermissionError):
            pass  # the rank has not made its group yet, or nothing of it is left
    if process.is_alive():
        process.kill()
