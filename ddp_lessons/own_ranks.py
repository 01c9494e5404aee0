"""What turns processes that a script starts itself into ranks like any other: engine="python".

`main(folder)` runs the script once, in a process that is no rank. Each Python that it starts comes
to `arrive()` before anything else, by a hook on its path. A rank takes its own logs, lifeline,
ledger and end marker there; what is no rank (torchrun, multiprocessing's helpers) goes on as it
would have, and may start ranks. What a rank starts is a rank's child and no rank.
"""

from __future__ import annotations

import importlib
import multiprocessing.process
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ddp_lessons import bootstrap, guard, lifeline, places, raised
from ddp_lessons.worker import NUMBER_OF, RECORDS

RUN = "DDP_LESSONS_RUN"  # in a process that may start ranks: the run's folder
NUMBER = "DDP_LESSONS_NUMBER"  # in a process that multiprocessing is just starting: its rank
Process = multiprocessing.process.BaseProcess

_lock = threading.Lock()
_started: dict[int, Process] = {}
_events: list[bootstrap.Events] = []  # this process's own, once it is a rank


def main(folder: str) -> None:
    """Run the script of the launch in `folder` once, as `python script.py` would. Does not
    return."""
    guard.stand(Path(folder))
    lifeline.lead_own_group()
    lifeline.hang_on(Path(folder))
    here = Path(folder) / bootstrap.STARTER
    here.mkdir()
    bootstrap.redirect(here)
    events = bootstrap.Events(here / bootstrap.EVENTS)
    events.write("started", pid=os.getpid(), above=bootstrap.above(Path(folder)))
    os.environ[RECORDS] = str(here / bootstrap.RECORDED)
    os.environ[RUN] = folder
    watch_starts()
    code, end = bootstrap.run_script(bootstrap.take_place(Path(folder)))
    bootstrap.flush()
    if os.getpid() == events.pid:
        codes = {rank: process.exitcode for rank, process in _started.items()}
        events.write("ended", code=code, codes=codes, **end)
    os._exit(code)


def arrive() -> None:
    """Called at the start of every Python that the script starts, and that those start."""
    if RUN not in os.environ:
        return
    rank = os.environ.pop(NUMBER, None)
    if rank is not None and "--multiprocessing-fork" in sys.orig_argv:
        become(int(rank))
        sys.excepthook = leave_early  # until multiprocessing calls the script's function
    elif os.environ.get("RANK", "").isdigit() and Path(sys.argv[0]).is_file():
        run_as_rank(int(os.environ["RANK"]))
    watch_starts()


def become(rank: int) -> None:
    """Make this process a rank: its output, its calls and its end are its own from now on."""
    folder = Path(os.environ.pop(RUN))
    lifeline.lead_own_group()
    guard.adopt_orphans()
    lifeline.hang_on(folder)
    os.environ[NUMBER_OF] = str(rank)
    events = bootstrap.announce(folder, rank)
    bootstrap.watch_calls(events, rank)
    _events.append(events)


def leave(code: int, end: dict[str, Any]) -> None:
    """Write the end marker and go. As in bootstrap, not by way of the interpreter's shutdown."""
    bootstrap.flush()
    if os.getpid() == _events[0].pid:
        _events[0].write("ended", code=code, **end)
        if code:
            # The script ends all ranks as soon as one has failed. See bootstrap.
            time.sleep(bootstrap.LINGER)
    os._exit(code)


def leave_early(kind: type, error: BaseException, *_: Any) -> None:
    """The script, which each spawned process imports again, has raised: sys.excepthook."""
    traceback.print_exception(raised.without_ours(error))
    leave(1, {"finished": False, "failure": raised.describe(error)})


def run_as_rank(rank: int) -> None:
    """Run, as this rank, the script that this Python was started with. Does not return."""
    path = os.path.abspath(sys.argv[0])  # noqa: PTH100  links stay: Python names the file so
    become(rank)
    sys.path.insert(0, str(Path(path).parent))
    leave(*bootstrap.run_script(path))


def watch_starts() -> None:
    """Know of each process that multiprocessing starts here, and of each that it forks."""
    start, body = Process.start, Process._bootstrap
    if getattr(start, "_watched", False):
        return

    def watched_start(process: Process) -> None:
        rank = None if _events else rank_of(process)
        if rank is None or rank in _started:
            return start(process)
        process._ddp_lessons_rank = rank
        with _lock:
            os.environ[NUMBER] = str(rank)
            try:
                start(process)
            finally:
                os.environ.pop(NUMBER, None)
        _started[rank] = process
        return None

    def watched_body(process: Process, *args: Any, **kwargs: Any) -> int:
        rank = getattr(process, "_ddp_lessons_rank", None)
        if rank is None:
            return body(process, *args, **kwargs)
        script = _Script(process)
        if not _events:  # forked, so it did not come by arrive()
            become(rank)
            script.renew_names()
        code = body(process, *args, **kwargs)
        return leave(code, script.end(code))

    watched_start._watched = True
    Process.start, Process._bootstrap = watched_start, watched_body


def rank_of(process: Process) -> int | None:
    """The rank that a process will be: the first argument of its function, None if that is none,
    or if the function is not the reader's own."""
    args, kwargs = process._args, process._kwargs
    code = getattr(process._target, "__code__", None)
    if _is_torchs(process._target):
        args = args[1:]  # (function, rank, arguments, file)
    elif code and not places.is_readers(code.co_filename):
        return None  # a worker of a DataLoader, say
    first = args[0] if args else kwargs.get("rank")
    whole = isinstance(first, int) and not isinstance(first, bool)
    return first if whole and first >= 0 else None


def _is_torchs(target: Callable | None) -> bool:
    name = getattr(target, "__module__", None), getattr(target, "__name__", None)
    return name == ("torch.multiprocessing.spawn", "_wrap")


class _Script:
    """The reader's function in a process of multiprocessing. How it ended is seen there: further
    out, torch or multiprocessing has made an exit code of it."""

    def __init__(self, process: Process):
        self._failed: dict[str, Any] | None = None
        if _is_torchs(process._target):
            self._inner, *rest = process._args
            process._args = (self, *rest)
        else:
            self._inner = process._target
            process._target = self

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        try:
            self._inner(*args, **kwargs)
        except SystemExit as stop:
            told = "0" if stop.code is None else str(stop.code)
            self._failed = raised.describe(stop, "exit", told)
            raise
        except BaseException as error:
            self._failed = raised.describe(error)
            raise

    def renew_names(self) -> None:
        """Where the script's `from torch.distributed import ...` came before the functions were
        wrapped, as in a fork, let its names mean the wrapped ones."""
        import torch.distributed as dist

        names = getattr(self._inner, "__globals__", {})
        for name, value in names.copy().items():
            wrapped = getattr(dist.distributed_c10d, getattr(value, "__name__", ""), None)
            inner = wrapped
            while inner is not None and inner is not value:
                inner = getattr(inner, "__wrapped__", None)
            if inner is not None:
                names[name] = wrapped

    def end(self, code: int) -> dict[str, Any]:
        """The facts for the end marker. Code 0 is no success where the function was interrupted:
        mp.spawn() makes that code of a KeyboardInterrupt."""
        left = code == 0 and (self._failed is None or self._failed["kind"] == "exit")
        name = "left" if left else "failure"
        return {"finished": left, **({name: self._failed} if self._failed else {})}


if __name__ == "__main__":
    # One copy of this module under its real name, not a second one as __main__.
    importlib.import_module("ddp_lessons.own_ranks").main(sys.argv[1])
