"""Run a command to its end or to a limit, and leave nothing of it behind."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"
GRACE = 15  # seconds that a command gets to end by itself once it is asked to


@dataclass(frozen=True)
class Finished:
    """What a command did. `output`: stdout and stderr together; `limited`: it ran to the limit."""

    seconds: float
    code: int
    output: str
    limited: bool


def finish(argv: Sequence[str], limit: float, env: Mapping[str, str] | None = None) -> Finished:
    """Run `argv`, with `env` on top of this process's environment, for at most `limit` seconds.

    Does not raise for an exit code other than 0.
    """
    # A file, not a pipe: a grandchild that held the pipe open would hold this process up.
    with tempfile.TemporaryFile() as out:
        began = time.perf_counter()
        process = subprocess.Popen(
            argv,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            limited = not _ends(process, limit)
            seconds = time.perf_counter() - began
        finally:
            # torchrun stops its workers when it is asked to end; killing it would orphan them.
            process.terminate()
            if not _ends(process, GRACE):
                process.kill()
                process.wait()
        out.seek(0)
        text = out.read().decode("utf-8", errors="replace")
    return Finished(seconds, process.returncode, text, limited)


def _ends(process: subprocess.Popen, seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def torchrun(script: str, ranks: int, *args: object) -> list[str]:
    """The real command for one of the benchmark scripts, as a terminal would run it."""
    return [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
        *("--nproc-per-node", str(ranks), str(SCRIPTS / script), *map(str, args)),
    ]
