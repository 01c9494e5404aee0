"""Say which rank failed first and why: pure functions from a Run to text.

The text is the same on every machine: no times, process ids, ports or paths.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

from ddp_lessons import agreement, causes, mismatch, stall
from ddp_lessons.run import Frame, Rank, Run
from ddp_lessons.stall import names

# What a rank says whose peer has gone: an echo of somebody else's failure.
ECHO = re.compile(
    r"closed by peer|reset by peer|broken pipe|connection refused|socket closed|"
    r"recvvalue failed|failed to recv|remote process exited",
    re.IGNORECASE,
)

DISK_FULL = (
    "the disk that keeps the ranks' output is full. Free some space, or start again with the "
    "environment variable TMPDIR set to a folder on another disk."
)

FRAMES = 6  # of a traceback, in a report
WIDTH = 500  # characters of a message, in a report

# "[enforce fail at .../device.cc:84] ifa != nullptr. ", "[.../pair.cc:525] "
NATIVE = re.compile(r"^\[[^\]]*\.\w+:\d+\] *(\S+ [!=<>]=? \S+\. )?")

TORCHS = ("RuntimeError", "DistError", "DistBackendError", "DistNetworkError", "DistStoreError")

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
    if run.mismatches:
        guilty, text = mismatch.explain(run)
        return guilty, "\n".join([text, *afterwards(run)])
    if all(rank.rank in stopped or succeeded(rank) for rank in run):
        return limit_report(run, timeout)
    first = first_failure(run, stopped)
    if first is None:
        return None, lost_peer_report(run, stopped)
    # Which one of several that ended alike was first is chance, and would read as a finding.
    guilty = [rank for rank in run if rank.rank not in stopped and end(rank) == end(first)]
    lines = [f"{run.script}: {sentence(guilty, run)}", *frames(guilty[0])]
    lines += needed(run, guilty)
    others = len(run) - len(guilty)
    if others:
        lines.append(f"  The other {'rank was' if others == 1 else 'ranks were'} ended with it.")
    return guilty[0].rank, "\n".join(lines)


def afterwards(run: Run) -> list[str]:
    """How the ranks ended that failed after their calls did not fit together; echoes left out."""
    failed = [rank for rank in run if rank.exitcode is not None and not succeeded(rank)]
    told = [sentence([rank], run, first=False) for rank in failed if not lost_peer(rank)]
    return [f"  After that {one.rstrip('.')}." for one in told]


def needed(run: Run, gone: Sequence[Rank]) -> list[str]:
    """For ranks that have left: the first call that others made and they did not."""
    ranks = {rank.rank for rank in gone if not rank.failure or rank.failure.kind == "exit"}
    if not ranks:
        return []
    unmet = agreement.book(rank.calls for rank in run).unmet()
    missed = [meeting for meeting in unmet if ranks & {*meeting.missing}]
    lines = []
    for meeting in missed[:1]:
        call = meeting.calls[0]
        who = names([each.rank for each in meeting.calls])
        lines.append(
            f"  {who.capitalize()} had called {stall.told(call)}, {call.file}, line {call.line}:"
        )
        lines.append(f"    {stall.source_line(run, call.file, call.line)}")
        lines += mismatch.parting(run, meeting)
    return [*lines, *recorded(run)]


def first_failure(run: Run, stopped: set[int]) -> Rank | None:
    """By cause, then by time: an exception of its own, a death without an end marker, a rank that
    left while others still needed it. None if all that ended complain of a lost peer, which may be
    among the ranks that were still running."""

    def when(rank: Rank) -> tuple:
        known = rank.exitcode is not None
        return not known, rank.ended if rank.ended is not None else float("inf"), rank.rank

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


def sentence(ranks: list[Rank], run: Run, first: bool = True) -> str:
    """What happened to these ranks, which ended alike, where, in one sentence. `first`: before the
    others failed, if they did."""
    rank, who = ranks[0], names([rank.rank for rank in ranks])
    if rank.failure and rank.failure.kind == "exit":
        return f"{who} {exit_phrase(rank)}."
    if rank.failure:
        message = first_line(rank.failure.message)
        failed = "failed first" if first and len(ranks) < len(run) else "failed"
        return f"{who} {failed}{at(rank)}: {rank.failure.kind}" + (
            f": {message}" if message else ""
        )
    if rank.finished:
        them = "it" if len(ranks) == 1 else "them"
        return f"{who} came to the end of the script while other ranks still needed {them}."
    if rank.exitcode is not None and rank.exitcode < 0:
        name = signal_name(-rank.exitcode)
        hint = f": {SIGNALS[name]}" if name in SIGNALS else ""
        was = "was" if len(ranks) == 1 else "were"
        return f"{who} {was} killed by {name} (signal {-rank.exitcode}){hint}."
    code = "" if rank.exitcode is None else f" with exit code {rank.exitcode}"
    if rank.started is None:
        return f"{who} ended{code} before the script began; the files in run.log say more."
    return f"{who} left early{code}, before the end of the script."


def exit_phrase(rank: Rank) -> str:
    """How a rank left by sys.exit: a number given to it is an exit code, all else a message."""
    code = rank.failure.message
    if code.lstrip("-").isdigit():
        return f"left early with exit code {code}{at(rank)}"
    return f"left early{at(rank)}: {first_line(code)}"


def at(rank: Rank) -> str:
    return f", line {rank.failure.line}" if rank.failure and rank.failure.line else ""


def frames(rank: Rank) -> list[str]:
    """The reader's own frames of a rank that failed, as Python prints them."""
    failure = rank.failure
    return levels([Frame(*level, own=True) for level in failure.frames]) if failure else []


def levels(trace: Sequence[Frame]) -> list[str]:
    """Frames, outermost first; of a deep recursion the ends."""
    lines = [
        f"  {frame.file}, line {frame.line}, in {frame.function}\n    {frame.source}".rstrip()
        for frame in trace
    ]
    if len(lines) <= FRAMES + 1:
        return lines
    half = FRAMES // 2
    return [*lines[:half], f"  … {len(lines) - FRAMES} more calls …", *lines[-half:]]


def first_line(message: str) -> str:
    """What a message means, if that is known, else its first line without a place in a C++ file."""
    line = causes.translate(message) or NATIVE.sub("", (message.strip().splitlines() or [""])[0])
    return line if len(line) <= WIDTH else line[:WIDTH] + "…"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "an unknown signal"


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


def too_slow(run: Run, started: int, timeout: float) -> str:
    """The report of a run whose time was over while its ranks were still being started."""
    return (
        f"{run.script}: the limit of {timeout:g} s came when {started} of {len(run)} ranks had "
        "been started. They were stopped. Give the run a longer timeout=, or fewer ranks."
    )


def limit_report(run: Run, timeout: float) -> tuple[int | None, str]:
    """The rank that the others waited for, if it is one, and where each rank stood at the limit."""
    found = stall.standings(run)
    missed = {rank for one in found for rank in one.on}
    groups = stall.grouped(found)
    told = "; ".join(stall.sentence(group) for group in groups[:MOST_STANDINGS])
    more = len(groups) - MOST_STANDINGS
    lines = [
        f"{run.script}: after {timeout:g} s, {told}" + (f"; {more} more." if more > 0 else ".")
    ]
    lines += places(groups)
    lines += [f"  {words}" for words in (*awaited(found), *joining(run), stall.cause(found))]
    lines += recorded(run)
    alone = missed.pop() if len(missed) == 1 else None
    return alone, "\n".join(lines)


MOST_STANDINGS, MOST_PLACES = 4, 8  # in the first sentence of a report, and in the lines below


def places(groups: Sequence[Sequence[stall.Standing]]) -> list[str]:
    """The lines of the reader's code where ranks stand, those that stand alike together."""
    lines = []
    for group in groups[:MOST_PLACES]:
        one = group[0]
        if one.source:
            who = names([each.rank for each in group])
            if len(one.trace) > 1:
                first, *others = levels(one.trace)
                lines += [f"  {who}: {first.lstrip()}", *others]
            else:
                lines += [f"  {who}: {one.file}, line {one.line}", f"    {one.source}"]
    return lines


def awaited(found: Sequence[stall.Standing]) -> list[str]:
    """Who has not come to the first call that others wait in."""
    waits = [one for one in found if one.kind == "call" and one.on]
    if not waits:
        return []
    first = min(waits, key=lambda one: one.call.called)
    if first.call.op in stall.PAIRED:
        return []
    return [f"{stall.names(first.on)} never called that {first.call.op}.".capitalize()]


def joining(run: Run) -> list[str]:
    """Who is missing in init_process_group, how it ended, and where the others look for it."""
    waiting = [r for r in run if r.called and not r.joined and r.exitcode is None]
    if not waiting:
        return []
    there = sum(1 for rank in run if rank.called)
    lines = [f"{there} of {waiting[0].expected} ranks have called it."]
    for rank in run:
        if not rank.called and rank.exitcode is not None:
            how = exit_phrase(rank) if rank.failure else "came to the end of the script"
            lines.append(f"Rank {rank.rank} {how}, without joining the process group.")
        elif not rank.called:
            lines.append(f"Rank {rank.rank} never called it.")
    for where in sorted({r.elsewhere for r in waiting if r.elsewhere}):
        lines.append(
            f"They meet at {where}, where this launch serves nobody: leave the address to launch()."
        )
    return lines


def recorded(run: Run) -> list[str]:
    """How often each rank recorded a name, where that differs: steps that some did not make."""
    counts: dict[str, list[int]] = {}
    for rank in run:
        for record in rank.records:
            counts.setdefault(record.name, [0] * len(run))[rank.rank] += 1
    return [
        f'  Recorded "{name}": '
        + "; ".join(f"{times(n)} on {names(ranks)}" for n, ranks in by_count(made).items())
        + "."
        for name, made in counts.items()
        if len(set(made)) > 1
    ]


def times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def by_count(made: Sequence[int]) -> dict[int, list[int]]:
    """The ranks by how often each did something."""
    found: dict[int, list[int]] = {}
    for rank, count in enumerate(made):
        found.setdefault(count, []).append(rank)
    return found
