"""check(): an exercise's verdict, from real ranks and a reference in this process."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ddp_lessons import arguments
from ddp_lessons.checks import answers, examine, exercise, values
from ddp_lessons.checks.exercise import COMMON, Case, Exercise, Fault
from ddp_lessons.checks.verdict import CheckError, Verdict
from ddp_lessons.launcher import launch
from ddp_lessons.run import Run, ScriptError, WorkerError, say
from ddp_lessons.text import folded

LIMIT = 20  # seconds for all cases together
REPORT_LINES = 12
PRINTED = 5  # lines of each rank


def check(key: str, path: str | Path | None = None) -> Verdict:
    """Run an answer on real ranks and return the verdict; raise CheckError if it does not pass.

    key: "NN_slug/name". path: the answer's .py file or notebook; without it, what the notebook's
    %%exercise cell wrote. Takes at most 20 seconds; each case has fresh processes, on gloo and the
    CPU, and fresh inputs, and is compared with a plain computation in one process.

    Raises CheckError (its `verdict` says what failed, and on which input), ValueError for an
    unknown key, FileNotFoundError if there is no answer yet.
    """
    try:
        verdict = grade(key, answers.find(key, path))
    except (ValueError, FileNotFoundError, RuntimeError) as error:
        raise say(error) from None
    if not verdict.passed:
        raise CheckError(verdict)
    return verdict


def grade(key: str, path: Path, seed: int = 0) -> Verdict:
    """The verdict on the answer in a file. After the cases of `seed`, which are the same each time,
    the last one runs once more with inputs that nobody can know before."""
    task = exercise.find(key)
    try:
        arguments.check_syntax(path)
    except ScriptError as error:
        return _verdict(task, "", [Fault("", str(error), "syntax")], ())
    began, runs = time.monotonic(), []
    cases = [*task.cases(seed), task.cases(secrets.randbelow(1 << 30))[-1]]
    for number, case in enumerate(cases):
        left = LIMIT - (time.monotonic() - began)
        run, faults = examined(task, path, case, min(task.timeout, max(left, 1)))
        if number < len(cases) - 1 or faults:
            runs.append(run)
        if faults:
            return _verdict(task, case.told, faults, tuple(runs))
    return _verdict(task, "", [], tuple(runs))


def examined(task: Exercise, path: Path, case: Case, timeout: float) -> tuple[Run, list[Fault]]:
    """One launch of an answer, and what is wrong with it."""
    token = secrets.token_hex(8)
    try:
        run = launch(
            examine.__file__,
            case.world_size,
            args=[task.key, path, json.dumps(asdict(case))],
            nnodes=case.nnodes,
            engine="torchrun" if case.nnodes > 1 else "forkserver",
            device="cpu",
            timeout=timeout,
            env={examine.TOKEN: token},
        )
    except WorkerError as error:
        return error.run, [_failure(task, path, case, error)]
    graded = [_graded(run, rank, token) for rank in range(len(run))]
    missing = [rank for rank, one in enumerate(graded) if one is None]
    if missing:
        them = "rank" if len(missing) == 1 else "ranks"
        told = f"{them} {', '.join(map(str, missing))} left before your function returned"
        return run, [Fault("", told, task.failed(case, run, "left_early") or "left_early")]
    results = [values.read(one["result"]) for one in graded]
    faults = _general(task, graded)
    if not faults:
        faults = list(task.judge(case, results, run))
    if not faults and not values.is_finite(results):
        faults = [Fault("", "a result holds NaN or an infinity", "not_finite")]
    unknown = [f.requirement for f in faults if f.requirement not in ("", *task.requirements)]
    assert not unknown, unknown
    return run, faults


def _graded(run: Run, rank: int, token: str) -> dict[str, Any] | None:
    """What the harness recorded in a rank, None if it did not come to that."""
    found = [
        record.values
        for record in run[rank].records
        if record.name == examine.GRADED and record.values.get("token") == token
    ]
    return found[0] if len(found) == 1 else None


def _general(task: Exercise, graded: Sequence[dict[str, Any]]) -> list[Fault]:
    """What no answer may do, whatever the exercise. A requirement called "input" is about the
    first of it."""
    faults = []
    name_of_input = "input" if "input" in task.requirements else ""
    for rank, one in enumerate(graded):
        for name, before, now in one["damaged"]:
            told = f"rank {rank}: {name} was {values.told(before)}, and is {values.told(now)} now"
            faults.append(Fault(name_of_input, told, "changed_input"))
        for what in one["changed"]:
            faults.append(Fault("", f"rank {rank}: your code changed {what}", "changed_state"))
    return faults


def _failure(task: Exercise, path: Path, case: Case, error: WorkerError) -> Fault:
    """The fault of a launch that did not come to its end."""
    run = error.run
    kinds = {rank.failure.kind for rank in run if rank.failure}
    if "NotImplementedError" in kinds:
        return Fault("", "", "not_written")
    if "MissingFunction" in kinds:
        failure = next(rank.failure for rank in run if rank.failure)
        return Fault("", failure.message, "no_function")
    kind = kind_of(error)
    lines = report_lines(error, path)
    for rank in run.ranks[:4]:
        lines += [f"rank {rank.rank} printed | {line}" for line in folded(rank.stdout, 0, PRINTED)]
    return Fault("", "\n".join(lines), task.failed(case, run, kind) or kind)


# What a report says of a script, and what a reader who wrote a function knows by another name.
WORDS = {
    "came to the end of the script": "returned",
    "before the end of the script": "before it returned",
    "error.run": "error.verdict.runs[-1]",
}


def report_lines(error: WorkerError, path: Path) -> list[str]:
    """The launcher's report without what only the harness knows of."""
    text = str(error).removeprefix(f"{error.run.script}: ").replace(f" of {path.name}", "")
    for words, others in WORDS.items():
        text = text.replace(words, others)
    harness = (f'Recorded "{examine.GRADED}"', "The run ended there")
    lines = [line for line in text.splitlines() if not line.strip().startswith(harness)]
    return lines if len(lines) <= REPORT_LINES else [*lines[:REPORT_LINES], "…"]


def kind_of(error: WorkerError) -> str:
    """In which of five ways a launch failed: mismatch, raises, killed, left_early, waits."""
    if error.run.mismatches:
        return "mismatch"
    if error.rank is None:
        running = all(rank.exitcode is None or rank.finished for rank in error.run)
        return "waits" if running else "left_early"
    guilty = error.run[error.rank]
    if guilty.failure:
        return "left_early" if guilty.failure.kind == "exit" else "raises"
    if guilty.finished:
        return "mismatch"  # it made fewer calls than the others
    killed = guilty.exitcode is not None and guilty.exitcode < 0
    return "killed" if killed else "left_early"


def _verdict(task: Exercise, case: str, faults: Sequence[Fault], runs: tuple[Run, ...]) -> Verdict:
    named = {fault.requirement for fault in faults if fault.requirement}
    # Of the results of an answer that broke a general rule, or came to none, nothing is said.
    judged = all(f.requirement and f.mistake != "changed_input" for f in faults)
    rest = True if judged else None
    held = tuple(
        (sentence, False if name in named else rest) for name, sentence in task.requirements.items()
    )
    if not faults:
        return Verdict(task.key, held, runs=runs)
    first = faults[0]
    known = {**COMMON, **task.mistakes}
    assert first.mistake == "" or first.mistake in known, first.mistake
    usual = known.get(first.mistake, "")
    told = tuple(line for line in first.told.splitlines() if line)
    case = "" if first.mistake in ("not_written", "no_function") else case
    return Verdict(task.key, held, case, told, first.mistake, usual, runs)
