"""The one entry of a worker, whichever engine started it.

forkserver calls `main(folder, env)` in a forked child; torchrun runs
`python -m ddp_lessons.bootstrap rank FOLDER` for every rank (`remote FOLDER` on a cluster). All do
the same: take the kernel's
environment, write this rank's logs, hang on the lifeline, run the script as `__main__`, write the
end marker, leave by os._exit. `agent FOLDER ...` is torchrun itself on the same lifeline.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import faulthandler
import importlib
import json
import multiprocessing
import os
import runpy
import signal
import sys
import threading
import time
import traceback
import types
from pathlib import Path

from ddp_lessons import forwards, guard, joining, ledger, lifeline, raised, remote
from ddp_lessons.worker import RECORDS

SPEC, EVENTS, STACK, RECORDED = "spec.json", "events.jsonl", "stack", "records.jsonl"
STARTER = "starter"  # the folder, in a run's, of a script's own process that starts its ranks
COMMAND = 200  # characters of a command line that are kept
ASK = getattr(signal, "SIGUSR2", None)  # this signal makes a rank write its stack
LINGER = 5.0  # seconds that a failed rank stays, under torchrun, for others to say why they fail


def rank_folder(folder: Path, attempt: int, rank: int) -> Path:
    return folder / f"attempt_{attempt}" / f"rank_{rank}"


def main(folder: str, env: dict[str, str] | None = None, away: bool = False) -> None:
    """Run the script of the launch in `folder` as one rank. `away`: the launching process may be on
    another machine. Does not return."""
    lifeline.lead_own_group()
    guard.adopt_orphans()  # they end with this rank
    if not away:
        lifeline.hang_on(Path(folder))
    if env is not None:
        # A forked child has the environment of the server's start, not the kernel's of today.
        os.environ.clear()
        os.environ.update(env)
    rank, attempt = int(os.environ["RANK"]), os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    events = announce(Path(folder), rank)
    if away:
        remote.hang_on(Path(folder), events.path.parent / STACK)
    path = take_place(Path(folder))
    settle_libraries()
    watch_calls(events, rank)
    events.write("ready")
    code, end = run_script(path)
    flush()
    if os.getpid() == events.pid:  # a child that the script forked may come this way too
        events.write("ended", code=code, **end)
        if code and os.environ["TORCHELASTIC_MAX_RESTARTS"] == attempt and env is None:
            # torchrun ends all ranks as soon as one has failed: the guilty one too, just as it says
            # why, if its victim was faster. launch() reads the end marker and stops us all.
            time.sleep(LINGER)
    # Not sys.exit: a process that used DDP on gloo aborts now and then in interpreter shutdown.
    os._exit(code)


def announce(folder: Path, rank: int) -> Events:
    """Say in the run's folder that this process is that rank; its output goes there from now on."""
    attempt = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0))
    here = rank_folder(folder, attempt, rank)
    here.mkdir(parents=True, exist_ok=True)
    redirect(here)
    events = Events(here / EVENTS)
    events.write(
        "started",
        pid=os.getpid(),
        parent=os.getppid(),
        node=int(os.environ.get("GROUP_RANK", 0)),
        local_rank=int(os.environ.get("LOCAL_RANK", rank)),
        above=above(folder),
    )
    os.environ[RECORDS] = str(here / RECORDED)
    return events


def take_place(folder: Path) -> str:
    """Stand where the launching process stands: its working directory, its path, the script's
    arguments. Returns the script's path."""
    spec = json.loads((folder / SPEC).read_text(encoding="utf-8"))
    os.chdir(spec["cwd"])
    sys.path[:] = [str(Path(spec["script"]).parent), *spec["sys_path"]]
    sys.argv = [spec["script"], *spec["args"]]
    return spec["script"]


def watch_calls(events: Events, rank: int) -> None:
    """Record from now on when this rank joins, what it calls, and where it stands if asked."""
    here, attempt = events.path.parent, int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0))
    joining.note(events.write)
    if attempt:
        joining.keep_apart(attempt)
    ledger.start(here, rank)
    forwards.note(here)
    tell_stack_when_asked(here)


def above(folder: Path) -> list[tuple[int, str]]:
    """The processes above this one, its parent first, up to the launching one if it is there: each
    as its id and its command line. Nothing where there is no /proc."""
    owner = json.loads((folder / SPEC).read_text(encoding="utf-8"))["owner"]
    found, pid = [], os.getppid()
    while pid > 1 and Path(f"/proc/{pid}/stat").exists():
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace")
        found.append((pid, command.replace("\0", " ").strip()[:COMMAND]))
        if pid == owner:
            break
        pid = guard.parent(pid) or 0
    return found


class Events:
    """This rank's milestones: started, ready (for the script), joined, ended. One JSON line each,
    flushed by the write."""

    def __init__(self, path: Path):
        self.path = path
        self.pid = os.getpid()

    def write(self, event: str, **facts: object) -> None:
        line = json.dumps({"event": event, "time": time.monotonic(), **facts})
        # On a full disk a milestone is lost, and without an end marker no run is a success.
        with contextlib.suppress(OSError), open(self.path, "a", encoding="utf-8") as file:
            file.write(line + "\n")


def redirect(here: Path) -> None:
    """Send file descriptors 1 and 2, and so also what C++ prints, to this rank's own files. Take 0
    away: a child that read the kernel's would wait for a terminal that never answers."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    for fd, name in ((1, "stdout"), (2, "stderr")):
        file = os.open(here / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(file, fd)
        os.close(file)
        stream = open(  # noqa: SIM115
            fd, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def settle_libraries() -> None:
    """Make libraries that the fork brought along behave as in a Python of this rank's own."""
    # A forked rank has the server's start method: DataLoader's workers would run the script again.
    multiprocessing.set_start_method(None, force=True)
    # The fork copied torch's and numpy's generators too: all ranks would draw the same numbers.
    if "torch" in sys.modules:
        import torch
        import torch.distributed as dist

        torch.set_num_threads(threads(os.environ.get("OMP_NUM_THREADS", "")))
        dist.set_debug_level_from_env()
        torch.default_generator.seed()
    if "numpy" in sys.modules:
        import numpy

        numpy.random.seed()


def threads(setting: str) -> int:
    """How many threads a value of OMP_NUM_THREADS asks for: "4", or "4,2" for nested levels."""
    first = setting.split(",")[0].strip()
    return int(first) if first.isdigit() and int(first) > 0 else 1


def tell_stack_when_asked(here: Path) -> None:
    """Let a signal make this rank write its Python stack, also while it waits in native code."""
    if ASK is not None:
        file = open(here / STACK, "w", encoding="utf-8")  # noqa: SIM115  open to the end
        faulthandler.register(ASK, file, all_threads=True, chain=False)


def run_script(path: str) -> tuple[int, dict]:
    """Run the file as `__main__`; return its exit code and the facts of its end."""
    module = types.ModuleType("__main__")
    module.__file__ = path
    module.__builtins__ = __builtins__
    sys.modules["__main__"] = module
    try:
        code = compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)
        exec(code, module.__dict__)
        end_as_python_does()
    except SystemExit as stop:
        if stop.code is None or stop.code == 0:
            end_as_python_does()
            return 0, {"finished": True, "left": raised.describe(stop, "exit", "0")}
        if not isinstance(stop.code, int):
            print(stop.code, file=sys.stderr)
        number = stop.code if isinstance(stop.code, int) else 1
        return number & 0xFF, {
            "finished": False,
            "failure": raised.describe(stop, "exit", str(stop.code)),
        }
    except BaseException as error:  # noqa: BLE001  the report must see whatever ended the script
        with contextlib.suppress(OSError):  # the disk is full
            traceback.print_exception(raised.without_ours(error))
        failure = raised.describe(error)
        return 1, {"finished": False, "failure": failure}
    return 0, {"finished": True}


def end_as_python_does() -> None:
    """What the interpreter does at its end and os._exit does not: wait for threads, then call what
    was registered with atexit."""
    threading._shutdown()  # multiprocessing ends its children by the same call
    atexit._run_exitfuncs()


def flush() -> None:
    """Send out what Python and C still hold back: os._exit drops it."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(ValueError, AttributeError, OSError):  # the script may close it
            stream.flush()
    if os.name == "posix":
        ctypes.CDLL(None).fflush(None)


def agent(folder: str, argv: list[str]) -> None:
    """Be torchrun, on the lifeline: it must not outlive the launching process either."""
    guard.stand(Path(folder))
    lifeline.lead_own_group()
    lifeline.hang_on(Path(folder))
    sys.argv = ["torchrun", *argv]
    runpy.run_module("torch.distributed.run", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    role, place, *rest = sys.argv[1:]
    # One copy of this module under its real name, not a second one as __main__.
    entry = importlib.import_module("ddp_lessons.bootstrap")
    if role == "agent":
        entry.agent(place, rest)
    else:
        entry.main(place, away=role == "remote")
