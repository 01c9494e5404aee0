"""Compare the notebooks with their outputs again and again, on one busy core.

    python tools/repeat.py TIMES [NOTEBOOK_OR_FOLDER ...]        default: notebooks solutions

What a loaded machine does to an output by chance shows in no single run. Where the system lets a
process choose its core, all runs share one with a process that never rests; elsewhere every core
has such a process. The exit code is 1 if any run differed.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESTLESS = [sys.executable, "-c", "while True: pass"]


@contextlib.contextmanager
def busy() -> Iterator[str]:
    """Confine this process and its children to one core, beside one that never rests."""
    before = os.sched_getaffinity(0) if hasattr(os, "sched_setaffinity") else None
    if before:
        os.sched_setaffinity(0, {min(before)})
    others = [subprocess.Popen(RESTLESS) for _ in range(1 if before else os.cpu_count() or 1)]
    try:
        yield "one busy core" if before else "busy cores"
    finally:
        for other in others:
            other.kill()
            other.wait()
        if before:
            os.sched_setaffinity(0, before)


def once(paths: list[str]) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "pytest", "--quiet", "--nbval", *paths]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)


def repeat(times: int, paths: list[str]) -> int:
    """How many of `times` runs differed. The report of each that did is printed."""
    differed = 0
    with busy() as where:
        for number in range(1, times + 1):
            begun = time.monotonic()
            done = once(paths)
            differed += done.returncode != 0
            verdict = "differs" if done.returncode else "the same"
            seconds = time.monotonic() - begun
            print(f"{number} of {times} on {where}: {verdict}, {seconds:.0f} s", flush=True)
            if done.returncode:
                print(done.stdout, done.stderr, flush=True)
    print(f"{differed} of {times} runs differed")
    return differed


def main() -> int:
    times, *paths = sys.argv[1:]
    return min(1, repeat(int(times), paths or ["notebooks", "solutions"]))


if __name__ == "__main__":
    sys.exit(main())
