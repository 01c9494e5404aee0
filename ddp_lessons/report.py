"""Say which rank failed first and why: pure functions from a Run to text.

The text is the same on every machine: no times, process ids, ports or paths.
"""

from __future__ import annotations

from collections.abc import Sequence

from ddp_lessons import agreement, hang, mismatch, stall, starting, usual_causes
from ddp_lessons.blame import end, first_failure, lost_peer, succeeded
from ddp_lessons.endings import at, brief, frames, sentence
from ddp_lessons.run import Rank, Run
from ddp_lessons.stall import names

DISK_FULL = (
    "the disk that keeps the ranks' output is full. Free some space, or start again with the "
    "environment variable TMPDIR set to a folder on another disk."
)


def explain(
    run: Run, stopped: set[int], timeout: float, reached: bool = True
) -> tuple[int | None, str]:
    """The rank to blame (None if no single one can be) and the report.

    stopped: ranks that were still running when launch() ended the run. timeout: seconds; reached:
    whether the run had them all.
    """
    if told := starting.explain(run, stopped, timeout):
        return None, told
    if run.mismatches:
        guilty, text = mismatch.explain(run)
        return guilty, "\n".join([text, *afterwards(run)])
    if all(rank.rank in stopped or succeeded(rank) for rank in run):
        return hang.explain(run, timeout if reached else None)
    first = first_failure(run, stopped)
    if first is None:
        return None, lost_peer_report(run, stopped)
    # Which one of several that ended alike was first is chance, and would read as a finding.
    guilty = [rank for rank in run if rank.rank not in stopped and end(rank) == end(first)]
    waited = waiting_for(run, guilty)
    said = sentence(guilty, run)
    if waited and first.finished and not first.failure:
        groups = stall.grouped(waited)[: hang.MOST_STANDINGS]
        told = "; ".join(stall.past(stall.sentence(group)) for group in groups)
        said = (
            f"{names([rank.rank for rank in guilty])} came to the end of the script while {told}."
        )
    lines = [f"{run.script}: {said}", *frames(guilty[0])]
    if not first.failure or first.failure.kind == "exit":
        lines += needed(run, guilty, waited)
    lines += also(run, guilty)
    others = len(run) - len(guilty)
    if others:
        them = "the other rank" if others == 1 else "the other ranks"
        lines.append(f"  The run ended there, for {them} too.")
    return guilty[0].rank, "\n".join(lines)


def afterwards(run: Run) -> list[str]:
    """How the ranks ended that failed after their calls did not fit together; echoes left out."""
    failed = [rank for rank in run if rank.exitcode is not None and not succeeded(rank)]
    # Not in which words: torch works on with whatever bytes it has received.
    told = [brief(rank) for rank in failed if not lost_peer(rank)]
    return [f"  After that {one}." for one in told]


def waiting_for(run: Run, gone: Sequence[Rank]) -> list[stall.Standing]:
    """Where the others waited when these ranks left."""
    left = {rank.rank for rank in gone}
    found = stall.standings(run)
    return [one for one in found if one.rank not in left and one.kind in ("call", "inside")]


def needed(run: Run, gone: Sequence[Rank], waited: Sequence[stall.Standing]) -> list[str]:
    """For ranks that have left: where others waited for them, and what that comes from."""
    left = {rank.rank for rank in gone}
    lines = [last_call(run, rank) for rank in gone if not rank.failure and rank.calls][:1]
    if waited and not all(rank.finished for rank in gone):
        for group in stall.grouped(waited)[: hang.MOST_STANDINGS]:
            told = stall.past(stall.sentence(group))
            lines.append(f"  {told[0].upper()}{told[1:]}.")
    lines += hang.places(waited)
    unmet = agreement.book(rank.calls for rank in run).unmet()
    for meeting in [meeting for meeting in unmet if left & {*meeting.missing}][:1]:
        behind = stall.behind(meeting)
        if behind and not mismatch.paired(meeting.calls[0]):
            lines.append(f"  {names(meeting.missing).capitalize()} did not: {behind}.")
        lines += mismatch.parting(run, meeting)
    if waited and all(rank.finished for rank in gone):
        lines.append(f"  {usual_causes.cause(stall.standings(run))}")
    return [*lines, *hang.recorded(run)]


def also(run: Run, guilty: Sequence[Rank]) -> list[str]:
    """The ranks that failed on their own as well, later or elsewhere."""
    known = {rank.rank for rank in guilty}
    others = [r for r in run if r.rank not in known and r.exitcode and not lost_peer(r)]
    told = [sentence([rank], run, first=False) for rank in others if rank.failure]
    return [f"  After that {one.rstrip('.')}." for one in told]


def last_call(run: Run, rank: Rank) -> str:
    call = rank.calls[-1]
    where = stall.place(run.script, call.file, call.line)
    return f"  The last call of rank {rank.rank} was {stall.told(call)}, {where}."


def lost_peer_report(run: Run, stopped: set[int]) -> str:
    """Ranks lost a peer and none says why: the one that they lost is among those still running."""
    first = min((r for r in run if lost_peer(r)), key=lambda r: (r.ended or 0.0, r.rank))
    lines = [f"{run.script}: rank {first.rank} lost its connection to another rank{at(first)}."]
    lines += frames(first)
    lines.append(f"  Still running then, and stopped: {names(stopped)}.")
    lines.append("  A rank that leaves the process group breaks what the others call after that.")
    return "\n".join(lines)


def on_a_full_disk(text: str, run: Run) -> str:
    """The report of a run whose ranks could write no more: first, if no rank could say why."""
    if any(rank.failure for rank in run):
        return f"{text}\n  {DISK_FULL[0].upper()}{DISK_FULL[1:]}"
    return f"{run.script}: {DISK_FULL}\n  {text.removeprefix(f'{run.script}: ')}"


def too_slow(run: Run, started: int, timeout: float, held_up: str = "") -> str:
    """The report of a run whose time was over while its ranks were still being started."""
    why = f": {held_up}" if held_up else ""
    return (
        f"{run.script}: the limit of {timeout:g} s came when {started} of {len(run)} ranks had "
        f"been started{why}. They were stopped. Give the run a longer timeout=, or fewer ranks."
    )


def never_came(run: Run, stopped: set[int], seconds: float) -> str:
    """The report of a run of which some ranks had not even come to the script."""
    who = names([rank.rank for rank in run if rank.rank in stopped and not rank.ready])
    return (
        f"{run.script}: {who} had not come to the script after {seconds:g} s. Python's own start "
        "or the import of torch did not end there. All ranks were stopped."
    )
