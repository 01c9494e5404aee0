"""launch(): the one way to start workers. Returns a Run, or raises and says why."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ddp_lessons import (
    arguments,
    bootstrap,
    collect,
    engines,
    folders,
    hang,
    lifeline,
    live,
    name_server,
    placement,
    report,
    scripts,
    stop_button,
    watch,
)
from ddp_lessons.engines import Job
from ddp_lessons.output_limit import OutputLimit
from ddp_lessons.run import Run, WorkerError, say
from ddp_lessons.text import last_printed
from ddp_lessons.worker import RECORDS


def launch(
    script: str | Path,
    world_size: int = 2,
    *,
    args: Sequence[object] = (),
    nnodes: int = 1,
    max_restarts: int = 0,
    device: str = "auto",
    engine: str = "forkserver",
    timeout: float = 60,
    env: Mapping[str, str] | None = None,
) -> Run:
    """Run `script` on `world_size` ranks and return what each one reported.

    script: a path, or a course script's name such as "00_start_here/hello.py".
    world_size: the total over all machines, 1 to 128, divisible by nnodes.
    args: the script's command line arguments.
    nnodes: machines; more than 1 needs engine="torchrun", where all are this one, or "slurm".
    max_restarts: how often a failed group is started again; more than 0 needs engine="torchrun".
    device: "auto" takes NCCL where there are as many GPUs as ranks and gloo on the CPU elsewhere;
        "cuda" and "cpu" insist.
    engine: "forkserver" answers in about 0.1 s; "torchrun" is the real command; "python" runs a
        script that starts its ranks itself, with mp.spawn() say, and finds `world_size` as
        WORLD_SIZE in its environment; "slurm" submits a job to a cluster.
    timeout: seconds, for the whole run. What torchrun takes to start all ranks does not count, up
        to three minutes.
    env: environment variables on top of this process's own.

    Raises WorkerError if any rank raises, leaves early or is still running at the limit;
    ValueError or TypeError for an argument out of range; FileNotFoundError or ScriptError for the
    script; RuntimeError for device="cuda" without enough GPUs; KeyboardInterrupt for the Stop
    button. In each case no process is left behind.
    """
    began = time.monotonic()
    with _one_sentence():
        if RECORDS in os.environ:
            raise RuntimeError(
                "launch() was called by a rank, which would start ranks without end: keep launch() "
                "out of the script that it starts"
            )
        path = scripts.find(script)
        arguments.check(world_size, nnodes, max_restarts, device, engine, timeout)
        arguments.check_surroundings(args, env)
        arguments.check_syntax(path)
        engines.prepare(engine)  # before torch is imported here, so that both imports overlap
        import_torch()
        env = {name: str(value) for name, value in (env or {}).items()}
        own_cards = env.get("CUDA_VISIBLE_DEVICES")
        placed = placement.place(
            world_size,
            nnodes,
            device,
            gpus=placement.gpu_count(own_cards),
            nccl=placement.nccl_built(),
            listed=own_cards,
            away=engine in engines.AWAY,
        )
        folder = folders.new_run(shared=engine in engines.AWAY)
        environment = rank_environment(world_size, env, away=engine in engines.AWAY)
        # The caller's own choice of cards stands, unless the caller wants none.
        keep = own_cards is not None and nnodes == 1 and device != "cpu"
        visible = (None,) if keep else placed.visible
        write_spec(folder, path, args)
    name = "cell" if folders.is_cell(path) else path.name
    starting = engines.SLOW.get(engine, 0)
    deadline = began + timeout + starting
    limit = f"{timeout:g} s" + (" once all ranks have come to the script" if starting else "")
    with (
        stop_button.heard_once() as stop,
        lifeline.held(folder) as cut,
        store() as port,
        live.shown(folder, name, world_size, limit) as looks,
    ):
        gpus = world_size // nnodes if placed.backend == "nccl" else 0
        job = Job(folder, world_size, nnodes, max_restarts, port, environment, visible, gpus)
        workers = engines.workers(engine, job)
        output = OutputLimit(folder, workers)
        looks = [*looks, watch.disagreement(folder, world_size), output.look]
        came: list[float] = []  # when all ranks had come to the script
        if starting:
            looks.append(watch.begun(folder, world_size, timeout, came.append))
        exitcodes, reached = {}, True
        try:
            workers.start(deadline)
            exitcodes = watch.watch(workers, deadline, folder, looks)
            deadline = min([deadline, *(when + timeout for when in came)])
            reached = time.monotonic() >= deadline
            if not output.passed:
                watch.ask_stacks(workers, folder)
        except KeyboardInterrupt:
            stop.pressed = True
            watch.ask_stacks(workers, folder, watch.AT_ONCE)
        finally:
            stop.ignore()
            stopped = workers.running()
            cut()
            workers.stop()
    run = collect.collect(name, path, folder, placed, exitcodes, seconds=time.monotonic() - began)
    if stop.pressed:
        note = f"{len(stopped)} rank{'' if len(stopped) == 1 else 's'} stopped"
        interrupt = KeyboardInterrupt(note)
        interrupt.run = run
        raise say(interrupt, [*hang.stood(run), *last_printed(run)])
    if not run.ok:
        started = len(stopped) + len(exitcodes)
        if output.passed:
            guilty, text = next(iter(output.over), None), output.report(name)
        elif started < world_size:
            guilty, text = None, report.too_slow(run, started, timeout, workers.held_up)
        elif starting and not came and reached:
            guilty, text = None, report.never_came(run, stopped, timeout + starting)
        else:
            guilty, text = report.explain(run, stopped, timeout, reached)
        if folders.is_full(folder):
            text = report.on_a_full_disk(text, run)
        raise WorkerError(text, dataclasses.replace(run, report=text), guilty)
    return run


def rank_environment(
    world_size: int, extra: Mapping[str, str], away: bool = False
) -> dict[str, str]:
    """This process's environment as it is now, and what ranks that share a machine need on top.
    away: the machine is another one, where each rank has one core."""
    env = dict(os.environ)
    if not env.get("OMP_NUM_THREADS"):
        env["OMP_NUM_THREADS"] = "1" if away else str(max(1, cores() // world_size))
    # Threads that spin while they wait starve each other where cores are shared: a small network
    # trained 30 to 100 times slower beside one busy process.
    env.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if not away:
        # Without it gloo looks the host name up, and warns where that does not resolve.
        env.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
        # torch asks the network for the name of ::ffff:127.0.0.1. Where no name server answers,
        # every rank would wait for it for ten seconds.
        env.setdefault("RES_OPTIONS", name_server.IMPATIENT)
    env.update(extra)
    return env


def cores() -> int:
    """CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def write_spec(folder: Path, path: Path, args: Sequence[object]) -> None:
    """Leave in the run's folder what every rank reads, under any engine, before it starts."""
    if isinstance(args, str | bytes):
        args = [args]
    spec = {
        "script": str(path),
        "source": path.read_text(encoding="utf-8", errors="replace"),
        "args": [str(arg) for arg in args],
        "owner": os.getpid(),
        "cwd": str(Path.cwd()),
        # An empty entry means the current folder, wherever the rank may be.
        "sys_path": [entry or str(Path.cwd()) for entry in sys.path if isinstance(entry, str)],
    }
    (folder / bootstrap.SPEC).write_text(json.dumps(spec), encoding="utf-8")


@contextlib.contextmanager
def store() -> Iterator[int]:
    """Serve a new TCPStore on 127.0.0.1 and yield its port.

    The port is bound before anyone is told of it, so no other process can take it. A store serves
    one run only: the next one would find this one's keys.
    """
    from torch.distributed import TCPStore

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        server = TCPStore(
            "127.0.0.1",
            port,
            None,
            True,
            wait_for_workers=False,
            master_listen_fd=listener.detach(),
        )
    try:
        yield port
    finally:
        del server


def import_torch() -> None:
    """Import torch on another thread. Stop interrupts only the main thread, and an import of torch
    that was interrupted half-way cannot be repeated: it would cost the reader the kernel."""

    def work() -> None:
        with contextlib.suppress(ImportError):  # the next import says it to the caller
            importlib.import_module("torch.distributed")
            name_server.settle(store)

    thread = threading.Thread(target=work, name="import torch", daemon=True)
    thread.start()
    thread.join()


@contextlib.contextmanager
def _one_sentence() -> Iterator[None]:
    """Errors about the call itself reach a notebook as one sentence, without our frames."""
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError) and error.errno in folders.FULL:
            error = OSError(error.errno, report.DISK_FULL)
        raise say(error) from None
    except KeyboardInterrupt:
        raise say(KeyboardInterrupt("no rank had started")) from None
