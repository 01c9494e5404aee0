"""The course's scripts on NCCL beside gloo: the same records, the same text?

    python -m benchmarks.gpu_check [--only TEXT] [--logs DIR]

Every script runs on as many GPUs as there are and then, with as many ranks, on the CPU. Needs torch
and numpy only; a script that needs more is skipped by name. Without a GPU only the gloo half runs.
Exit code 1 if a script fails that should not (or the other way round), or if the halves differ.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import needs, same
from benchmarks.commands import Finished, finish, torchrun
from benchmarks.tables import text_table
from ddp_lessons import course, launch, placement, scripts
from ddp_lessons.arguments import MOST_RANKS
from ddp_lessons.course import Demo
from ddp_lessons.run import Run, WorkerError

GPU_START = 30  # seconds more a run, where ranks have to wake a GPU before they begin
ONE_GPU_LIMIT = 30  # seconds for two ranks on one GPU: refused, slow, or waiting for ever
HEAD = ("script", "ranks", "NCCL ok?", "gloo ok?", "records equal?", "text equal?", "note")


@dataclass(frozen=True)
class Half:
    """A script on one backend. `ok`: it ended as it is meant to. `text`: the run's summary, or the
    report of one that failed. `run` is None if nothing could be started."""

    ok: bool
    text: str
    run: Run | None = None


@dataclass(frozen=True)
class Row:
    """A line of the table; None stands for what was not looked at. `wrong` makes the check fail."""

    script: str
    ranks: int
    nccl: bool | None = None
    gloo: bool | None = None
    records: bool | None = None
    text: bool | None = None
    note: str = ""
    wrong: tuple[str, ...] = ()

    def cells(self) -> list[str]:
        known = {True: "yes", False: "no", None: "-"}
        answers = [known[answer] for answer in (self.nccl, self.gloo, self.records, self.text)]
        return [self.script, str(self.ranks or "-"), *answers, self.note]


def check(name: str, gpus: int, logs: Path) -> Row:
    """Run one script on both backends, or on gloo alone, and compare."""
    absent = needs.missing(scripts.HERE / name)
    if absent:
        return Row(name, 0, note=f"skipped: no {', '.join(absent)} here")
    demo = course.demo(name)
    ranks, note = ranks_for(demo, gpus)
    on_gpus = gpus > 0 and not note
    timeout = demo.timeout + (GPU_START if on_gpus else 0)
    nccl = half(name, ranks, "cuda", demo, timeout, logs) if on_gpus else None
    gloo = half(name, ranks, "cpu", demo, timeout, logs)
    return judge(name, demo, ranks, nccl, gloo, note)


def ranks_for(demo: Demo, gpus: int) -> tuple[int, str]:
    """How many ranks to run, and why NCCL cannot have them (empty if it can, or has no GPU)."""
    most = min(gpus, MOST_RANKS) // demo.nnodes * demo.nnodes
    if gpus == 0:
        return demo.world_size, ""
    if demo.device == "cpu":
        return demo.world_size, "not on NCCL: the lesson asks for the CPU"
    if demo.exact and demo.world_size > gpus:
        return demo.world_size, f"not on NCCL: needs {demo.world_size} GPUs, {gpus} here"
    if not most:
        return demo.world_size, f"not on NCCL: needs {demo.nnodes} GPUs, {gpus} here"
    return (demo.world_size if demo.exact else most), ""


def half(name: str, ranks: int, device: str, demo: Demo, timeout: float, logs: Path) -> Half:
    """Run a script on one backend and keep its logs."""
    keep = logs / f"{name.replace('/', '__').removesuffix('.py')}.{device}"
    shutil.rmtree(keep, ignore_errors=True)
    keep.mkdir(parents=True)
    options = {
        "nnodes": demo.nnodes,
        "engine": demo.engine,
        "timeout": timeout,
        "env": demo.env,
    }
    # A script about the choice of cards makes that choice itself, and touches none.
    asked = "auto" if "CUDA_VISIBLE_DEVICES" in demo.env else device
    try:
        path = scripts.HERE / name
        with contextlib.chdir(keep):  # for scripts that write files
            run, report = launch(path, ranks, args=demo.args, device=asked, **options), ""
    except WorkerError as error:
        run, report = error.run, str(error)
    except Exception as error:  # noqa: BLE001  one script that cannot start must not end the check
        report = f"{type(error).__name__}: {error}"
        (keep / "summary.txt").write_text(report + "\n", encoding="utf-8")
        return Half(False, report)
    shutil.copytree(run.log, keep, ignore=special, dirs_exist_ok=True)
    (keep / "summary.txt").write_text(f"{report}\n{run!r}\n".lstrip(), encoding="utf-8")
    run = same.without(run, demo.on_gpus)
    return Half(run.ok is not demo.fails, report or same.text_of(run), run)


def special(folder: str, names: list[str]) -> list[str]:
    """What of a folder cannot be copied: a run's folder may hold a FIFO."""
    paths = (Path(folder) / name for name in names)
    return [path.name for path in paths if not (path.is_file() or path.is_dir())]


def judge(name: str, demo: Demo, ranks: int, nccl: Half | None, gloo: Half, note: str) -> Row:
    """The line of the table for the halves of one script; `nccl` is None where it did not run."""
    halves = {"NCCL": nccl, "gloo": gloo} if nccl else {"gloo": gloo}
    bad = [
        f"{side}: "
        + ("ends well, and is there to fail" if demo.fails else half.text.split("\n")[0])
        for side, half in halves.items()
        if not half.ok
    ]
    if len(bad) == len(halves) and ranks != demo.world_size:
        note, bad = f"not for {ranks} rank{'' if ranks == 1 else 's'}", []
    records = text = None
    if nccl and nccl.ok and gloo.ok:
        if not demo.fails:  # how far the others came, when one fails, is a matter of time
            found = same.differences(nccl.run, gloo.run)
            records = not found
            bad += [difference.text for difference in found]
        line = same.unequal_line(nccl.text, gloo.text)
        text = not line
        bad += [f"text: {line}"] if line else []
        hidden = sorted({*same.left_out(nccl.run), *same.left_out(gloo.run)})
        note = "; ".join(filter(None, [note, hidden and f"left out: {', '.join(hidden)}"]))
    return Row(name, ranks, nccl and nccl.ok, gloo.ok, records, text, note, tuple(bad))


def two_ranks_on_one_gpu(logs: Path) -> str:
    """What happens when two ranks share GPU 0, in a sentence. launch() never places ranks so: this
    is torchrun itself, on a script that tells NCCL to allow it."""
    backstop = ONE_GPU_LIMIT + 15
    done = finish(torchrun("one_gpu.py", 2, backstop), ONE_GPU_LIMIT)
    logs.mkdir(parents=True, exist_ok=True)
    (logs / "two_ranks_on_one_gpu.txt").write_text(done.output, encoding="utf-8")
    return f"Two ranks on one GPU: {outcome(done)}"


def outcome(done: Finished) -> str:
    """The result that both ranks printed, or the first exception, or that there was neither."""
    sums = re.findall(r"^rank \d of NCCL (\S+): sum=(.*)$", done.output, re.MULTILINE)
    if len(sums) == 2:
        version, total = sums[0]
        return f"NCCL {version} gave {total} after {done.seconds:.1f} s."
    if done.limited:
        return f"the limit of {ONE_GPU_LIMIT} s was reached."
    raised = r"^(?:\[rank\d\]: ?)?((?:\w+\.)*\w*(?:Error|Exception)\b.*)$"
    error = re.search(raised, done.output, re.MULTILINE)
    twice = re.search(r"Duplicate GPU detected.*", done.output)
    lines = [error and error[1], twice and twice[0]]
    return "; ".join(filter(None, lines)) or f"exit code {done.code} and no exception."


def describe_machine(gpus: int) -> str:
    """The first line of the output: which torch, which GPUs, which NCCL."""
    import torch

    if not placement.nccl_built():
        what = "this build of torch has no NCCL: only the gloo half runs"
    elif not gpus:
        what = "no GPU on this machine: only the gloo half runs"
    else:
        version = ".".join(map(str, torch.cuda.nccl.version()))
        what = f"{gpus} GPU{'' if gpus == 1 else 's'}, NCCL {version}"
    return f"torch {torch.__version__}, {what}."


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", help="part of a script's name; repeatable")
    parser.add_argument("--logs", type=Path, default=Path("build/gpu_check"), metavar="DIR")
    options = parser.parse_args(argv)
    names = [n for n in course.names() if any(text in n for text in options.only or [""])]
    if not names:
        parser.error(f"no script has {' or '.join(options.only or [])} in its name")
    gpus = placement.gpu_count() if placement.nccl_built() else 0
    print(describe_machine(gpus), flush=True)
    rows = []
    for name in names:
        rows.append(check(name, gpus, options.logs))
        # The table comes last; a check that is stopped before that has said this much.
        print(f"{name}: {'wrong' if rows[-1].wrong else 'right'}", file=sys.stderr, flush=True)
    wrong = [f"{row.script}: {sentence}" for row in rows for sentence in row.wrong]
    parts = [text_table(HEAD, [row.cells() for row in rows]), "\n".join(wrong)]
    if gpus == 1:
        parts.append(two_ranks_on_one_gpu(options.logs))
    report = "\n\n".join(filter(None, parts))
    options.logs.mkdir(parents=True, exist_ok=True)
    (options.logs / "report.txt").write_text(report + "\n", encoding="utf-8")
    print(report)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
