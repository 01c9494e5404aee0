"""What to say of an answer whose launch did not come to its end: pure functions from its error."""

from __future__ import annotations

import re
import time
from pathlib import Path

from ddp_lessons import stall
from ddp_lessons.checks import examine
from ddp_lessons.checks.exercise import Case, Exercise, Fault
from ddp_lessons.mismatch import CAUSES
from ddp_lessons.run import Failure, Run, WorkerError

MOST_LINES = 12  # of a report


def fault(task: Exercise, path: Path, case: Case, error: WorkerError) -> Fault:
    """The fault of a launch in which a rank's function did not return."""
    failures = [rank.failure for rank in error.run if rank.failure]
    for failure in failures:
        if failure.kind == examine.MissingFunction.__name__:
            return Fault("", failure.message, "no_function")
        if is_stub(failure):
            _, line, function, _ = failure.frames[-1]
            return Fault("", f"{function}() is not written yet, line {line}", "not_written")
    kind = kind_of(error)
    if kind == "busy":
        return Fault("", "the time was up before all ranks had come to your function", kind)
    lines = report_lines(error, path)
    told = "\n".join(lines)
    if kind == "raises" and not error.run[error.rank].failure.frames:
        return Fault("", told, "no_function" if is_call(task, failures[0]) else "")
    own = task.failed(case, error.run, kind)
    if own:  # it knows more than the launcher, whose guess would be a second opinion
        told = "\n".join(line for line in lines if line.strip() not in CAUSES.values())
    elif kind == "raises" and wants_tensor(error.run[error.rank].failure):
        own = "no_tensor"
    if kind == "raises":
        told = called(error.run, error.rank) + told
    return Fault("", told, own or kind)


def after_return(task: Exercise, path: Path, case: Case, error: WorkerError) -> Fault:
    """The fault of a launch in which every rank's function had returned."""
    if kind_of(error) == "endless":
        still = [rank.rank for rank in error.run if not rank.finished]
        told = f"your function had returned, but the process of {stall.names(still)} did not end"
        return Fault("", told, "left_running")
    return fault(task, path, case, error)


def is_stub(failure: Failure) -> bool:
    """Whether the line that failed is the one that an exercise is handed out with."""
    source = failure.frames[-1][3] if failure.frames else ""
    return failure.kind == "NotImplementedError" and source.startswith(f"raise {failure.kind}")


def is_call(task: Exercise, failure: Failure) -> bool:
    """Whether a function could not be called with what the exercise passes to it."""
    start = tuple(f"{name}()" for name in task.names)
    return failure.kind == "TypeError" and failure.message.startswith(start)


def wants_tensor(failure: Failure) -> bool:
    """Whether torch.distributed was given a number, or something else, in place of a tensor."""
    wanted = r"Invalid function argument\. Expected parameter `\w+` of type torch\.Tensor"
    return failure.kind == "TypeError" and re.match(wanted, failure.message) is not None


# What a report says of a script, and what a reader who wrote a function knows by another name.
WORDS = {
    r"came to the end of the script": "returned",
    r"before the end of the script": "before it returned",
    r"error\.run": "error.verdict.runs[-1]",
    r" *No rank was seen to wait for another\. If they were at work, .*\n?": "",
    r"If ranks? [^.]* at work there, give the run a longer timeout=\. If not, every": "Every",
    r" An uneven last batch is the usual cause: .* cut afterwards\.": "",
    r"Give the run a longer timeout=, or fewer ranks\.": "Is the computer busy? Try once more.",
}


def report_lines(error: WorkerError, path: Path) -> list[str]:
    """The launcher's report without what only the harness knows of."""
    text = str(error).removeprefix(f"{error.run.script}: ").replace(f" of {path.name}", "")
    for words, others in WORDS.items():
        text = re.sub(words, others, text)
    harness = (f'Recorded "{examine.GRADED}"', "The run ended there")
    lines = [line for line in text.splitlines() if not line.strip().startswith(harness)]
    return lines if len(lines) <= MOST_LINES else [*lines[:MOST_LINES], "…"]


def called(run: Run, rank: int) -> str:
    """A line with what the exercise recorded of the input that a rank failed on, if anything."""
    found = [one.values for one in run[rank].records if one.name == examine.CALLED]
    return "".join(f"The input: {values['told']}\n" for values in found[-1:] if "told" in values)


def kind_of(error: WorkerError) -> str:
    """In which way a launch failed: mismatch, raises, killed, left_early, waits, endless (some rank
    was at work at the limit), busy (the limit came before all had begun) or prints (too much)."""
    run = error.run
    if run.mismatches:
        return "mismatch"
    guilty = None if error.rank is None else run[error.rank]
    if "MB of output" in str(error):
        return "prints"
    if guilty is None and any(not (r.exitcode is None or r.finished) for r in run):
        return "left_early"
    if guilty is None or (guilty.exitcode is None and not guilty.finished and not guilty.failure):
        # The answer is called when all have joined. That may come late, and leave it no time.
        late = run.ranks[-1].node == 0 and time_left(run) < run.seconds / 2  # torchrun takes long
        if late or any(rank.joined is None for rank in run):
            return "busy"
        kinds = {one.kind for one in stall.standings(run)}
        return "endless" if kinds & {"at work", "unknown"} else "waits"
    if guilty.failure:
        return "left_early" if guilty.failure.kind == "exit" else "raises"
    if guilty.finished:
        return "mismatch"  # it made fewer calls than the others
    return "killed" if guilty.exitcode is not None and guilty.exitcode < 0 else "left_early"


def time_left(run: Run) -> float:
    """Seconds that a launch which was stopped just now lasted after all its ranks had joined."""
    return time.monotonic() - max(rank.joined or 0.0 for rank in run)
