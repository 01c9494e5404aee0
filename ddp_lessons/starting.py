"""Say what went wrong in the script's own process, where a script starts its ranks itself."""

from __future__ import annotations

from ddp_lessons.blame import succeeded
from ddp_lessons.endings import first_line, frames
from ddp_lessons.run import Run, Starter


def explain(run: Run, stopped: set[int], timeout: float) -> str | None:
    """The report, or None if the script's own process did its part or a rank failed before it.

    stopped: ranks that were still running when launch() ended the run. timeout: seconds.
    """
    starter = run.starter
    if starter is not None and was_cut_off(starter, run, stopped):
        when = "while its ranks were at work, and they ended with it"
        if not starter.came:
            when = "before it had started a rank"
        return (
            f"{run.script}: the script's own process was killed, or left by os._exit(), {when}. "
            "Where it was killed, the computer often had no memory (RAM) left."
        )
    if starter is None or any(failed(run, rank.rank, stopped) for rank in run):
        return None
    if starter.failure:
        return "\n".join([f"{run.script}: {failure(starter)}", *frames(starter)])
    if starter.came != tuple(range(len(run))):
        return f"{run.script}: {miscount(starter, len(run), stopped, timeout)}"
    if not starter.finished and all(rank.finished for rank in run):
        end = f"was still running after {timeout:g} s" if stopped else "ended early"
        return f"{run.script}: all ranks came to their end, and the script's own process {end}."
    return None


def failed(run: Run, rank: int, stopped: set[int]) -> bool:
    one = run[rank]
    return one.started is not None and rank not in stopped and not succeeded(one)


def was_cut_off(starter: Starter, run: Run, stopped: set[int]) -> bool:
    """Whether the script's own process ended without a word, and the ranks only because of that:
    mp.spawn() has Linux interrupt them then, and the guard kills what is left."""
    if starter.pid is None or starter.finished or starter.failure or stopped:
        return False
    ends = [rank for rank in run if not succeeded(rank)]
    return bool(ends) and all(
        rank.failure.kind == "KeyboardInterrupt" if rank.failure else rank.exitcode is None
        for rank in ends
    )


def failure(starter: Starter) -> str:
    """What the script's own process raised, where, and how far it had come."""
    told = starter.failure
    line = f", line {told.line}" if told.line else ""
    far = "after it had started ranks" if starter.came else "before it had started a rank"
    if told.kind == "exit":
        return f"the script's own process left {far}{line}: exit {first_line(told.message)}"
    said = f": {first_line(told.message)}" if told.message else ""
    return f"the script's own process failed {far}{line}: {told.kind}{said}"


def miscount(starter: Starter, expected: int, stopped: set[int], timeout: float) -> str:
    """Other ranks came than launch() was told of."""
    if not starter.came:
        when = f"after {timeout:g} s the script had started" if stopped else "the script started"
        return (
            f"{when} no rank. A rank is a process of multiprocessing whose function gets its rank "
            "as the first argument, as mp.spawn() gives it, or a Python that has RANK in its "
            "environment."
        )
    came = ", ".join(map(str, starter.came))
    return (
        f"the script started {len(starter.came)} rank{'s' * (len(starter.came) > 1)} ({came}), and "
        f"launch() was told of {expected}. Give both the same number: the script finds launch()'s "
        "as WORLD_SIZE in its environment."
    )
