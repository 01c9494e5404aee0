"""One person of `workshop.py check`: goes through lessons, in a kernel for each, and says how.

    python tools/workshop_user.py FOLDER TIMEOUT NOTEBOOK...

FOLDER is the person's own. Prints a line of JSON when a lesson begins and when it has ended.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import re
import sys
import time
from pathlib import Path

import nbformat
import psutil
from nbformat import NotebookNode

from execute import COLOURS, CellFault, code_cells, execute


def main(folder: Path, timeout: int, notebooks: list[str]) -> None:
    say(pid=os.getpid())
    for name in notebooks:
        say(begun=name)
        say(**go_through(folder / name, timeout), ended=name)


def go_through(path: Path, timeout: int) -> dict:
    """Execute a notebook beside its file; its seconds, its CPU seconds, the most ranks of one
    launch, and what is wrong, a sentence each."""
    committed = nbformat.read(path, as_version=4)
    notebook = copy.deepcopy(committed)
    for _, cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    used = {"cpu": 0.0, "ranks": 0}

    def after_cell(**_: object) -> None:
        # While the kernel lives: what it has used is lost with it where a guard outlives it.
        used["cpu"] = max(used["cpu"], cpu_seconds())
        used["ranks"] = max(used["ranks"], most_ranks())

    began, before = time.monotonic(), cpu_seconds()
    faults = []
    try:
        execute(notebook, path.parent, timeout, after_cell)
    except CellFault as fault:
        faults.append(str(fault))
    else:
        faults += differences(committed, notebook)
    return {
        "seconds": time.monotonic() - began,
        "cpu": max(0.0, used["cpu"] - before),
        "ranks": used["ranks"],
        "faults": faults,
        "package": package(),
    }


def differences(committed: NotebookNode, notebook: NotebookNode) -> list[str]:
    """The cells whose text is not the committed one, as nbval compares it."""
    found = []
    pairs = zip(code_cells(committed), code_cells(notebook), strict=True)
    for (number, old), (_, new) in pairs:
        if (want := text(old)) != (have := text(new)):
            first = new.source.partition("\n")[0]
            found.append(f"cell {number} ({first}):\n  was {want}\n  now {have}")
    return found


def text(cell: NotebookNode) -> list[str]:
    """What a cell's outputs say, without pictures, HTML, stderr and the frames of an error."""
    told = []
    for output in cell.outputs:
        if output.output_type == "stream":
            told += [output.text] if output.name == "stdout" else []
        elif output.output_type == "error":
            told.append(f"{output.ename}: {output.evalue}")
        else:
            told.append(output.data.get("text/plain", ""))
    return [COLOURS.sub("", one) for one in told]


def cpu_seconds() -> float:
    """CPU time of all processes below this one, and of those of theirs that have ended."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            total += sum(process.cpu_times()[:4])
    return total


def most_ranks() -> int:
    """The most ranks of any launch of the kernels that live: each rank has a folder of its own."""
    counts = [0]
    for attempt in Path(os.environ["TMPDIR"]).glob("ddp_lessons-*/run_*/attempt_*"):
        ranks = [p for p in attempt.iterdir() if re.fullmatch(r"rank_\d+", p.name)]
        counts.append(len(ranks))
    return max(counts)


def package() -> str:
    """Where the package lies that the lessons used."""
    import ddp_lessons

    return str(Path(ddp_lessons.__file__).parent)


def say(**what: object) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
