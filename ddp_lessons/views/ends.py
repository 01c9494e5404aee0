"""How and when each rank of a run came to its end, for the pictures of a run that failed."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass

from ddp_lessons.blame import end, first_failure, lost_peer
from ddp_lessons.run import Call, Rank, Run
from ddp_lessons.stall import place


@dataclass(frozen=True)
class End:
    """A rank's end at `time`, in monotonic seconds. `kind`: "failed", "left" (it came to the end of
    the script while others did not) or "lost" (all that it says is that its peer has gone)."""

    kind: str
    time: float
    words: str


def ends(run: Run) -> dict[int, End]:
    """By rank, how those ended that failed, and those that others still needed.

    A rank that failed first has left its group at the latest when the first of the others noticed.
    The end that is known of it can be later, for it cleans up, and of a kill none is known.
    """
    whole = all(rank.finished for rank in run)
    found = [rank for rank in run if (failed(rank) or rank.finished) and not whole]
    lost = {rank.rank for rank in found if lost_peer(rank)}
    seen = [time for rank in found if rank.rank in lost for time in noticed(rank)]
    first = set(guilty(run))
    made = {}
    for rank in found:
        time = when(rank)
        if rank.rank in first and seen:
            # Not before what it still did itself.
            latest = max([min(seen), *times(rank.calls)])
            time = latest if time is None else min(time, latest)
        if time is None:
            time = max(times(run.calls), default=0.0)
        kind = "lost" if rank.rank in lost else "left" if rank.finished else "failed"
        made[rank.rank] = End(kind, time, short_words(rank, run))
    return made


def failed(rank: Rank) -> bool:
    return rank.failure is not None or rank.exitcode not in (0, None)


def guilty(run: Run) -> list[int]:
    """The ranks that failed first, or left while others needed them; none after a mere hang."""
    stopped = {rank.rank for rank in run if rank.exitcode is None}
    if not any(failed(rank) for rank in run):
        return []
    first = first_failure(run, stopped)
    found = [rank for rank in run if rank.rank not in stopped]
    return [rank.rank for rank in found if first is not None and end(rank) == end(first)]


def when(rank: Rank) -> float | None:
    if rank.failure and rank.failure.time is not None:
        return rank.failure.time
    return rank.ended


def noticed(rank: Rank) -> list[float]:
    """When a rank noticed that its peer had gone, as far as that is known."""
    raised = [call.returned for call in rank.calls if call.raised][-1:]
    return [time for time in (*raised, when(rank)) if time is not None]


def times(calls: Sequence[Call]) -> list[float]:
    """All that is known of when these calls were made and came to an end."""
    known = (t for call in calls for t in (call.called, call.returned, call.waited, call.done))
    return [time for time in known if time is not None]


def short_words(rank: Rank, run: Run) -> str:
    """ "ValueError, line 7", "came to the end", "killed by SIGKILL", "lost its peer"."""
    failure = rank.failure
    if lost_peer(rank):
        return "lost its peer"
    if failure:
        where = place(run.script, failure.file, failure.line)
        kind = "sys.exit" if failure.kind == "exit" else failure.kind
        return f"{kind}, {where}" if where else kind
    return "came to the end" if rank.finished else words(rank, run).removeprefix("was ")


def words(rank: Rank, run: Run) -> str:
    """What a rank did at its end, to follow its name: "failed, line 7: ValueError"."""
    failure = rank.failure
    if failure:
        where = place(run.script, failure.file, failure.line)
        where = f", {where}" if where else ""
        if failure.kind == "exit":
            return f"left by sys.exit{where}"
        return f"lost its peer{where}" if lost_peer(rank) else f"failed{where}: {failure.kind}"
    if rank.finished:
        return "came to the end of the script"
    code = rank.exitcode
    if code is not None and -code in set(signal.Signals):
        return f"was killed by {signal.Signals(-code).name}"
    return f"left with exit code {code}"
