"""Which rank failed first: by cause, then by time. Pure functions from a Run."""

from __future__ import annotations

import re

from ddp_lessons.run import Rank, Run

# What a rank says whose peer has gone: an echo of somebody else's failure.
ECHO = re.compile(
    r"closed by peer|reset by peer|broken pipe|connection refused|socket closed|"
    r"recvvalue failed|failed to recv|remote process exited",
    re.IGNORECASE,
)

TORCHS = ("RuntimeError", "DistError", "DistBackendError", "DistNetworkError", "DistStoreError")


def first_failure(run: Run, stopped: set[int]) -> Rank | None:
    """By cause, then by time: an exception of its own, a death without an end marker, a rank that
    left while others still needed it. None if all that ended complain of a lost peer, which may be
    among the ranks that were still running."""

    def when(rank: Rank) -> tuple:
        known, failure = rank.exitcode is not None, rank.failure
        end = failure.time if failure and failure.time is not None else rank.ended
        return not known, end if end is not None else float("inf"), rank.rank

    failed = [rank for rank in run if rank.rank not in stopped and not succeeded(rank)]
    own = [rank for rank in failed if rank.failure and not lost_peer(rank)]
    dead = [rank for rank in failed if not rank.failure]
    left = [rank for rank in run if rank.finished and rank.failure]
    done = [rank for rank in run if rank.finished]
    for group in (own, dead, left, done, [] if stopped else failed):
        if group:
            return min(group, key=when)
    return None


def end(rank: Rank) -> tuple:
    """The manner and the place of a rank's end, equal for ranks that ended alike."""
    failure = rank.failure
    place = failure and (failure.kind, failure.file, failure.line)
    return rank.exitcode, rank.finished, lost_peer(rank), place


def succeeded(rank: Rank) -> bool:
    return rank.finished and rank.exitcode == 0


def lost_peer(rank: Rank) -> bool:
    """Whether all that a rank's exception says is that its peer or the store has gone."""
    failure = rank.failure
    return failure is not None and is_echo(f"{failure.kind}: {failure.message}", *failure.chain)


def is_echo(*told: str) -> bool:
    """Whether an exception, as "Class: message" with what led to it, is an echo of somebody else's
    failure. Python's own, ConnectionRefusedError say, come from the reader's own connections."""
    return any(one.partition(":")[0] in TORCHS and ECHO.search(one) for one in told)
