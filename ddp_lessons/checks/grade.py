"""check(): an exercise's verdict, from real ranks and a reference in this process."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ddp_lessons import arguments
from ddp_lessons.checks import answers, examine, exercise, failures, values
from ddp_lessons.checks.exercise import COMMON, Case, Exercise, Fault
from ddp_lessons.checks.verdict import CheckError, Verdict
from ddp_lessons.launcher import launch
from ddp_lessons.run import Run, ScriptError, WorkerError, say
from ddp_lessons.stall import names
from ddp_lessons.text import folded

LIMIT = 19  # seconds for an answer in all cases together
START = 20  # seconds for a case whose ranks did not come to the answer before
LEAST = 2  # seconds for one case, or it does not begin
REPORT_LINES = 12
PRINTED = 5  # lines of each of the first four ranks


def check(key: str, path: str | Path | None = None) -> Verdict:
    """Run an answer on real ranks and return the verdict; raise CheckError if it does not pass.

    key: "NN_slug/name". path: the answer's .py file or notebook; without it, what the notebook's
    %%exercise cell wrote. Each case has fresh processes, on gloo and the CPU, and fresh inputs, and
    is compared with a plain computation in one process. An answer that needs more than 20 seconds
    in all does not pass.

    Raises CheckError (its `verdict` says what failed, and on which input), ValueError for an
    unknown key, FileNotFoundError if there is no answer yet.
    """
    try:
        exercise.find(key)  # a key that is none has no answer either, and is the one to name
        verdict = grade(key, answers.find(key, path))
    except (ValueError, OSError, RuntimeError) as error:
        raise say(error) from None
    except KeyboardInterrupt as error:
        raise error if hasattr(error, "run") else say(KeyboardInterrupt()) from None
    if not verdict.passed:
        raise CheckError(verdict)
    return verdict


def grade(key: str, path: Path, seed: int = 0) -> Verdict:
    """The verdict on the answer in a file. After the cases of `seed`, which are the same each time,
    the last one on a single machine runs once more with inputs that nobody can know before."""
    task = exercise.find(key)
    try:
        arguments.check_syntax(path)
    except ScriptError as error:
        return _verdict(task, "", [Fault("", str(error), "syntax")], ())
    launch(examine.__file__, 1, device="cpu")  # the server starts in a time of its own
    spent, runs = 0.0, []
    known = [*task.cases(seed)]
    # Several machines take torchrun, which takes seconds: once is enough.
    unknown = [case for case in task.cases(secrets.randbelow(1 << 30)) if case.nnodes == 1][-1:]
    launches = len(known + unknown)
    for number, case in enumerate([*known, *unknown]):
        left = int(LIMIT - spent)
        limit = case.timeout or min(task.timeout, left)
        over = f"the {LIMIT} s that an answer has were over in launch {number + 1} of {launches}"
        too_slow = [Fault("", over, "too_slow")]
        if left < LEAST:
            return _verdict(task, case.told, too_slow, tuple(runs))
        run, faults = examined(task, path, case, limit)
        if faults and faults[0].mistake == "busy":
            run, faults = examined(task, path, case, max(START, limit))
        if limit == left < task.timeout and faults and faults[0].mistake == "endless":
            faults = too_slow
        spent += 0 if case.timeout else seconds(run)
        if number < len(known) or faults:
            runs.append(run)
        if faults:
            return _verdict(task, case.told, faults, tuple(runs))
    return _verdict(task, "", [], tuple(runs))


def seconds(run: Run) -> float:
    """How long the answer took, without the time in which its ranks were started."""
    joined = [rank.joined for rank in run if rank.joined]
    ended = [rank.ended for rank in run if rank.ended]
    return max(ended) - max(joined) if joined and ended else 0.0


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
        graded = [_graded(error.run, rank, token) for rank in range(len(error.run))]
        if None not in graded:  # all had returned: what comes after that is the harness's own
            faults = _general(task, graded)
            return error.run, faults or [failures.after_return(task, path, case, error)]
        return error.run, [failures.fault(task, path, case, error)]
    graded = [_graded(run, rank, token) for rank in range(len(run))]
    missing = [rank for rank, one in enumerate(graded) if one is None]
    if missing:
        told = f"{names(missing)} left before your function returned"
        return run, [Fault("", told, task.failed(case, run, "left_early") or "left_early")]
    faults = _general(task, graded) or _judged(task, case, [one.result for one in graded], run)
    # Without a wait a result is right or wrong by luck, and so is what it looks like.
    faults = _unwaited(graded, run, faults)
    unknown = [f.requirement for f in faults if f.requirement not in ("", *task.requirements)]
    assert not unknown, unknown
    return run, faults


@dataclass(frozen=True)
class _Graded:
    """What the harness recorded in a rank."""

    result: Any
    damaged: list[tuple[str, str, str]]
    changed: list[str]
    waits: int  # for Works that the ledger has not seen


def _graded(run: Run, rank: int, token: str) -> _Graded | None:
    """None if the rank did not come to that, or if somebody else wrote what cannot be read."""
    found = [
        record.values
        for record in run[rank].records
        if record.name == examine.GRADED and record.values.get("token") == token
    ]
    if len(found) != 1:
        return None
    try:
        changed = [str(what) for what in found[0]["changed"]]
        damaged = [
            (str(name), values.told(values.read(before)), values.told(values.read(now)))
            for name, before, now in found[0]["damaged"]
        ]
        waits = int(found[0]["waits"])
        return _Graded(values.read(found[0]["result"]), damaged, changed, waits)
    except (LookupError, TypeError, ValueError):
        return None


def _general(task: Exercise, graded: Sequence[_Graded]) -> list[Fault]:
    """What no answer may do, whatever the exercise. A requirement called "input" is about the
    first of it."""
    faults = []
    name_of_input = "input" if "input" in task.requirements else ""
    for rank, one in enumerate(graded):
        for name, before, now in one.damaged:
            told = f"rank {rank}: {name} was {before}, and is {now} now"
            faults.append(Fault(name_of_input, told, "changed_input"))
        for what in one.changed:
            faults.append(Fault("", f"rank {rank}: your code changed {what}", "changed_state"))
    return faults


def _unwaited(graded: Sequence[_Graded], run: Run, faults: list[Fault]) -> list[Fault]:
    """The faults, and why: calls that were started, and nobody waited for them."""
    for rank, one in zip(run, graded, strict=True):
        left = [call for call in rank.calls if call.asynchronous and call.waited is None]
        if len(left) <= one.waits:
            continue
        which = f"{len(left) - one.waits} of the calls that it started"
        if not one.waits:
            which = f"the {left[0].op} of line {left[0].line}"
        told = f"rank {rank.rank}: nobody waited for {which}"
        first = faults[0] if faults else Fault("", "")
        told = "\n".join(filter(None, [first.told, told]))
        return [Fault(first.requirement, told, "no_wait"), *faults[1:]]
    return faults


def _judged(task: Exercise, case: Case, results: Sequence[Any], run: Run) -> list[Fault]:
    """What the exercise says of the results. Of those that it was not made for, it may say nothing:
    they are in the verdict then."""
    try:
        faults = list(task.judge(case, results, run))
    except Exception as error:  # noqa: BLE001  whatever a comparison with anything may raise
        told = "; ".join(f"rank {n} returned {values.told(one)}" for n, one in enumerate(results))
        return [Fault("", f"{told}: that cannot be compared ({error})", "wrong_type")]
    if not faults and not values.is_finite(results):
        return [Fault("", "a result holds NaN or an infinity", "not_finite")]
    return faults


def _verdict(task: Exercise, case: str, faults: Sequence[Fault], runs: tuple[Run, ...]) -> Verdict:
    named = {fault.requirement for fault in faults if fault.requirement}
    # Of the others nothing is said: it was not looked at all of them, nor in all cases.
    met = set() if faults else set(task.requirements)
    if task.one_by_one and named:
        order = list(task.requirements)
        met.update(order[: min(map(order.index, named))])
    held = tuple(
        (sentence, False if name in named else name in met or None)
        for name, sentence in task.requirements.items()
    )
    if not faults:
        return Verdict(task.key, held, runs=runs)
    first = faults[0]
    known = {**COMMON, **task.mistakes}
    assert first.mistake == "" or first.mistake in known, first.mistake
    usual = known.get(first.mistake, "")
    told = tuple(line for line in first.told.splitlines() if line)
    told += tuple(printed(runs[-1])) if runs else ()
    case = "" if first.mistake in ("not_written", "no_function") else case
    return Verdict(task.key, held, case, told, first.mistake, usual, runs)


def printed(run: Run) -> list[str]:
    """What an answer printed last."""
    return [
        f"rank {rank.rank} printed | {line}"
        for rank in run.ranks[:4]
        for line in folded(rank.stdout, 0, PRINTED)
    ]
