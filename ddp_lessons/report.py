"""Say which rank failed first and why: pure functions from a Run to text.

The text is the same on every machine: no times, process ids, ports or paths.
"""

from __future__ import annotations

import re
import signal

from ddp_lessons.run import Rank, Run

# What a rank says whose peer has gone: an echo of somebody else's failure.
ECHO = re.compile(
    r"closed by peer|reset by peer|broken pipe|connection refused|socket closed|"
    r"recvvalue failed|failed to recv|remote process exited|wait timeout after",
    re.IGNORECASE,
)

SIGNALS = {
    "SIGKILL": "often the system ran out of memory",
    "SIGSEGV": "a crash in native code",
    "SIGABRT": "native code gave up; its message is in that rank's stderr",
    "SIGBUS": "often /dev/shm is full",
    "SIGTERM": "something asked it to stop",
}


def explain(run: Run, stopped: set[int], timeout: float) -> tuple[int | None, str]:
    """The rank to blame (None if no single one can be) and the report.

    stopped: ranks that were still running when launch() ended the run. timeout: seconds.
    """
    guilty = first_failure(run, stopped)
    if guilty is None:
        return None, limit_report(run, stopped, timeout)
    rank = run[guilty]
    lines = [f"{run.script}: {sentence(rank)}"]
    if rank.failure:
        lines += [
            f"  {file}, line {line}, in {function}\n    {source}".rstrip()
            for file, line, function, source in rank.failure.frames
        ]
    others = run.world_size - 1
    if others:
        lines.append(f"  The other {'rank was' if others == 1 else 'ranks were'} ended with it.")
    return guilty, "\n".join(lines)


def first_failure(run: Run, stopped: set[int]) -> int | None:
    """By cause, then by time: an exception of its own, a death without an end marker, a rank that
    left while others still needed it, and only then the ranks that complain of a lost peer."""

    def when(rank: Rank) -> float:
        return rank.ended if rank.ended is not None else float("inf")

    failed = [r for r in run if not (r.finished and r.exitcode == 0) and r.rank not in stopped]
    own = [r for r in failed if r.failure and not is_echo(r)]
    dead = [r for r in failed if not r.failure]
    left = [r for r in run if r.finished] if failed else []
    for group in (own, dead, left, failed):
        if group:
            return min(group, key=lambda r: (when(r), r.rank)).rank
    return None


def is_echo(rank: Rank) -> bool:
    """Whether a rank's exception only says that its peer or the store has gone."""
    return bool(rank.failure and rank.failure.kind != "exit" and ECHO.search(rank.failure.message))


def sentence(rank: Rank) -> str:
    """What happened to this rank, where, in one sentence."""
    who, failure = f"rank {rank.rank}", rank.failure
    if failure and failure.kind == "exit":
        at = f", line {failure.line}" if failure.line else ""
        return f"{who} left early with exit code {failure.message}{at}."
    if failure:
        at = f", line {failure.line}" if failure.line else ""
        message = failure.message.strip().splitlines()[0] if failure.message.strip() else ""
        return f"{who} failed first{at}: {failure.kind}" + (f": {message}" if message else "")
    if rank.finished:
        return f"{who} came to the end of the script while other ranks still needed it."
    if rank.exitcode is not None and rank.exitcode < 0:
        name = signal_name(-rank.exitcode)
        hint = f": {SIGNALS[name]}" if name in SIGNALS else ""
        return f"{who} was killed by {name} (signal {-rank.exitcode}){hint}."
    if rank.started is None:
        return f"{who} ended before the script began (exit code {rank.exitcode})."
    return f"{who} left early with exit code {rank.exitcode}, before the end of the script."


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "an unknown signal"


def limit_report(run: Run, stopped: set[int], timeout: float) -> str:
    """Who was still running at the limit, and what the others had done by then."""
    lines = [f"{run.script}: still running after the limit of {timeout:g} s: {names(stopped)}."]
    outside = sorted(r.rank for r in run if r.rank in stopped and r.joined is None)
    joined = sorted(r.rank for r in run if r.joined is not None)
    ended = sorted(r.rank for r in run if r.rank not in stopped)
    if outside and joined:
        lines.append(f"  Joined the process group: {names(joined)}; not yet: {names(outside)}.")
    elif outside:
        lines.append(f"  Not in a process group: {names(outside)}.")
    if ended:
        lines.append(f"  Came to the end of the script: {names(ended)}.")
    lines.append("  All were stopped. A rank that waits for ever waits for one that never comes.")
    return "\n".join(lines)


def names(ranks: set[int] | list[int]) -> str:
    """ "rank 1", "ranks 0 and 2", or "ranks 0, 1, 2 and 5 more"."""
    listed = [str(rank) for rank in sorted(ranks)]
    if len(listed) == 1:
        return f"rank {listed[0]}"
    if len(listed) > 8:
        return f"ranks {', '.join(listed[:3])} and {len(listed) - 3} more"
    return f"ranks {', '.join(listed[:-1])} and {listed[-1]}"
