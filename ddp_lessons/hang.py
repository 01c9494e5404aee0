"""Say at the time limit who waits where, for whom, and why: pure functions from a Run to text."""

from __future__ import annotations

from collections.abc import Sequence

from ddp_lessons import agreement, stall, usual_causes
from ddp_lessons.endings import exit_phrase, levels
from ddp_lessons.run import Run

MOST_STANDINGS, MOST_PLACES = 4, 8  # in the first sentence of a report, and in the lines below


def explain(run: Run, timeout: float | None) -> tuple[int | None, str]:
    """The rank that the others waited for, if it is one, and where each rank stood at the limit, or
    before that (None): what can never end is not waited for until then."""
    found = stall.standings(run)
    missed = {rank for one in found for rank in one.on if rank < len(run)}
    groups = stall.grouped(found)
    told = "; ".join(stall.sentence(group) for group in groups[:MOST_STANDINGS])
    more = len(groups) - MOST_STANDINGS
    limit = "" if timeout is None else f"after {timeout:g} s, "
    lines = [f"{run.script}: {limit}{told}" + (f"; {more} more." if more > 0 else ".")]
    lines += places(found)
    lines += [
        f"  {words}" for words in (*awaited(run, found), *joining(run), usual_causes.cause(found))
    ]
    lines += recorded(run)
    alone = missed.pop() if len(missed) == 1 else None
    return alone, "\n".join(lines)


def places(found: Sequence[stall.Standing]) -> list[str]:
    """The lines of the reader's code where ranks stand, those at the same line together."""
    at: dict[tuple, list[stall.Standing]] = {}
    for one in found:
        if one.source:
            at.setdefault((one.file, one.line, one.trace), []).append(one)
    lines = []
    for group in [*at.values()][:MOST_PLACES]:
        one, who = group[0], stall.names([each.rank for each in group])
        if len(one.trace) > 1:
            first, *others = levels(one.trace)
            lines += [f"  {who}: {first.lstrip()}", *others]
        else:
            lines += [f"  {who}: {one.file}, line {one.line}", f"    {one.source}"]
    return lines


def awaited(run: Run, found: Sequence[stall.Standing]) -> list[str]:
    """Who has not come to the first call that others wait in."""
    waits = [one for one in found if one.kind == "call" and one.on]
    circle = all(other.kind == "call" for one in waits for other in found if other.rank in one.on)
    if not waits or waits[0].call.op in stall.PAIRED or circle:
        return []
    first = waits[0]
    unmet = agreement.book(rank.calls for rank in run).unmet()
    behind = next((stall.behind(m) for m in unmet if first.call in m.calls), "")
    them = stall.names(first.on).capitalize()
    return [f"{them} had not called that {first.call.op}{behind and ': ' + behind}."]


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
    """How often each rank recorded a name or went through DDP's forward, where that differs: steps
    that some did not make. Nothing while a rank is at work: how far it came is chance."""
    if any(one.kind in ("at work", "unknown") for one in stall.standings(run)):
        return []
    counts = {"DDP's forward": [rank.forwards for rank in run]}
    for rank in run:
        for record in rank.records:
            made = counts.setdefault(f'Recorded "{record.name}"', [0] * len(run))
            made[rank.rank] += 1
    return [
        f"  {what}: "
        + "; ".join(f"{times(n)} on {stall.names(ranks)}" for n, ranks in by_count(made).items())
        + "."
        for what, made in counts.items()
        if len(set(made)) > 1
    ]


def times(count: int) -> str:
    return {0: "never", 1: "once"}.get(count, f"{count} times")


def by_count(made: Sequence[int]) -> dict[int, list[int]]:
    """The ranks by how often each did something."""
    found: dict[int, list[int]] = {}
    for rank, count in enumerate(made):
        found.setdefault(count, []).append(rank)
    return found


def stood(run: Run) -> list[str]:
    """Where each rank stood when it was stopped, as lines of their own; none if that is unknown."""
    found = [one for one in stall.standings(run) if one.line]
    if not found:
        return []
    told = [f"{stall.sentence(group)}." for group in stall.grouped(found)[:MOST_PLACES]]
    why = [usual_causes.cause(found)] if any(one.on for one in found) else []
    return ["Where the ranks stood:", *told, *places(found), *why]
