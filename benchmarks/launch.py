"""This launcher beside torchrun, spawn and a bare `import torch`, in one run.

    python -m benchmarks.launch [--repeats N] [--only NAME] [--json PATH]

The sides of a row take turns, so that a slow minute of the machine meets both; the table has
medians. Nothing here is a test: a number that is not reached changes no exit code. A new row is one
more function under @row.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.commands import SCRIPTS, finish, torchrun
from benchmarks.results import Result, Side, at_least, at_most, in_turn, table
from ddp_lessons import launch, ledger
from ddp_lessons.launcher import cores

LIMIT = 120  # seconds, for any one measurement
SUM = "sum=[6, 10, 14, 18]"  # what each of four ranks prints
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
WITHOUT_LEDGER = {ledger.SWITCH: "0"}
BLOCKS = 40
ROUNDS = 10


ROWS: dict[str, Callable[[int], Result]] = {}


def row(function: Callable[[int], Result]) -> Callable[[int], Result]:
    """Put a function that takes the number of repeats into the table."""
    ROWS[function.__name__] = function
    return function


@row
def torchrun_start(repeats: int) -> Result:
    by_launch()  # the server is warm from here on
    sides = in_turn(repeats, "s", torchrun=by_torchrun, launch=by_launch)
    return at_least(35, "torchrun / launch: 4 ranks, all-reduce of 4 numbers", sides)


@row
def spawn_start(repeats: int) -> Result:
    by_launch()
    sides = in_turn(repeats, "s", spawn=by_spawn, launch=by_launch)
    return at_least(25, "spawn (python script.py) / launch: same", sides)


@row
def ranks_64(repeats: int) -> Result:
    seconds, megabytes = [], []
    for _ in range(repeats):
        began = time.perf_counter()
        run = launch(SCRIPTS / "memory.py", 64, device="cpu", timeout=LIMIT)
        seconds.append(time.perf_counter() - began)
        # The rank that has most: an average would hide one that copied everything.
        megabytes.append(max(run.values("private_bytes")) / 1e6)
    sides = Side("launch", "s", tuple(seconds)), Side("private", "MB a rank", tuple(megabytes))
    reached = sides[0].median <= 3 and sides[1].median <= 10
    return Result("64 ranks: start, all-reduce, end", sides, None, "<= 3 s, <= 10 MB", reached)


@row
def fresh_kernel(repeats: int) -> Result:
    bare_import()  # torch's files are in the page cache from here on
    sides = in_turn(repeats, "s", kernel=first_launch_in_a_kernel, torch=bare_import)
    return at_most(2.0, "first launch in a fresh kernel / python -c 'import torch'", sides)


@row
def steps(repeats: int) -> Result:
    sides = in_turn(repeats, "steps/s", launch=steps_in_launch, torchrun=steps_in_torchrun)
    return at_least(0.97, "training steps inside launch / under torchrun, 2 ranks", sides)


@row
def ledger_cost(repeats: int) -> Result:
    sides = in_turn(
        repeats,
        "ms",
        recorded=lambda: tiny_calls({}),
        plain=lambda: tiny_calls(WITHOUT_LEDGER),
        again=lambda: tiny_calls(WITHOUT_LEDGER),
    )
    control = sides[2].median / sides[1].median
    what = f"1,000 tiny all-reduces with / without ledger, 2 ranks (A/A control {control:.3g})"
    return at_most(1.10, what, sides)


def by_launch() -> float:
    began = time.perf_counter()
    run = launch(SCRIPTS / "all_reduce.py", 4, device="cpu", timeout=LIMIT)
    seconds = time.perf_counter() - began
    expect(SUM, 4, "".join(rank.stdout for rank in run))
    return seconds


def by_torchrun() -> float:
    return seconds_of(torchrun("all_reduce.py", 4))


def by_spawn() -> float:
    return seconds_of([sys.executable, str(SCRIPTS / "spawned.py"), "4"])


def seconds_of(argv: Sequence[str]) -> float:
    done = finish(argv, LIMIT)
    expect(SUM, 4, done.output)
    return done.seconds


def bare_import() -> float:
    return finish([sys.executable, "-c", "import torch"], LIMIT).seconds


def first_launch_in_a_kernel() -> float:
    """Seconds inside a new Jupyter kernel from before the import until the result is there."""
    from jupyter_client.manager import start_new_kernel

    code = (
        "import time; began = time.perf_counter()\n"
        "from ddp_lessons import launch\n"
        f"run = launch({str(SCRIPTS / 'all_reduce.py')!r}, 4, device='cpu')\n"
        "seconds = time.perf_counter() - began"
    )
    with tempfile.TemporaryDirectory() as profile:  # the user's own start-up files stay out
        environment = {**os.environ, "IPYTHONDIR": profile}
        manager, client = start_new_kernel(env=environment, stderr=subprocess.DEVNULL)
        try:
            wanted = {"out": "''.join(rank.stdout for rank in run)", "seconds": "seconds"}
            reply = client.execute(code, user_expressions=wanted, reply=True, timeout=LIMIT)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
    content = reply["content"]
    if content["status"] != "ok":
        raise RuntimeError(f"the kernel says {content['ename']}: {content['evalue']}")
    out, seconds = (content["user_expressions"][name]["data"]["text/plain"] for name in wanted)
    expect(SUM, 4, out)
    return float(seconds)


def steps_in_launch() -> float:
    run = launch(
        SCRIPTS / "steps.py", 2, args=[BLOCKS], device="cpu", timeout=LIMIT, env=ONE_THREAD
    )
    return steps_per_second(run[0].stdout)


def steps_in_torchrun() -> float:
    # Judged by what it printed: a DDP process on gloo aborts now and then after its last line.
    return steps_per_second(finish(torchrun("steps.py", 2, BLOCKS), LIMIT, ONE_THREAD).output)


def tiny_calls(env: dict[str, str]) -> float:
    """Milliseconds of 1,000 all-reduces of one number."""
    run = launch(SCRIPTS / "tiny.py", 2, args=[ROUNDS], device="cpu", timeout=LIMIT, env=env)
    expect("milliseconds=", 1, run[0].stdout)
    return float(run[0].stdout.partition("=")[2])


def steps_per_second(output: str) -> float:
    expect("steps_per_second=", 1, output)
    return float(re.findall(r"steps_per_second=([\d.]+)", output)[0])


def expect(text: str, times: int, output: str) -> None:
    """Raise RuntimeError unless `output` has the line that proves the work was done."""
    if output.count(text) != times:
        raise RuntimeError(f"{text!r} was wanted {times} times in:\n{output[-2000:]}")


def machine() -> dict[str, object]:
    """What the numbers were measured on."""
    import torch

    return {
        "cores": cores(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="measurements a side (default 5)")
    parser.add_argument("--only", action="append", choices=list(ROWS), help="this row; repeatable")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write every measurement there")
    options = parser.parse_args(argv)
    if options.repeats < 1:
        parser.error("--repeats is 1 or more")
    results = {}
    for name in options.only or ROWS:
        print(f"{name} ...", file=sys.stderr, flush=True)
        results[name] = ROWS[name](options.repeats)
    print(table(list(results.values())))
    if options.json:
        rows = {name: asdict(result) for name, result in results.items()}
        facts = {"machine": machine(), "repeats": options.repeats, "rows": rows}
        options.json.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
