"""The sentence under the picture of the calls: counts, order and lines, no times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ddp_lessons import mismatch
from ddp_lessons.run import Run
from ddp_lessons.stall import names, standings
from ddp_lessons.text import short
from ddp_lessons.views.call_labels import MANY
from ddp_lessons.views.call_layout import LABELLED
from ddp_lessons.views.call_layout import never_returned as is_never
from ddp_lessons.views.ends import failed


def calls_told(run: Run) -> str:
    """What holds on every machine: counts, order and lines, no times. Of a run in which a rank
    failed, or that was only slow, not even the counts: how far it came is a matter of time."""
    waited_for_ever = [rank for rank in run if rank.exitcode is None]
    parts = []
    if run.mismatches:
        first = run.mismatches[0]
        told = mismatch.sentence(run, first, mismatch.sides(first))
        parts.append(f"The calls of {ranks(run)}: {told}")
    elif any(failed(rank) for rank in run):
        parts.append(f"The calls of {ranks(run)}. {how_it_failed(run)}")
    elif waited_for_ever and not stuck(run):
        parts.append(f"The calls of {ranks(run)} until the run was stopped.")
    else:
        parts += [counts(run), *never_returned(run)]
    if any(len(rank.calls) > MANY for rank in run) or len(run) > LABELLED:
        parts.append("Labels are left out where there is no room.")
    return " ".join(parts)


def how_it_failed(run: Run) -> str:
    """Who ended how, and where: the first line of the report, which no chance has a part in."""
    text = run.report.partition("\n")[0].removeprefix(f"{run.script}: ")
    text = short(text, 200) or "The run failed."
    return f"{text[0].upper()}{text[1:]}" + ("" if text[-1] in ".!?…" else ".")


def ranks(run: Run) -> str:
    return f"{len(run)} rank{'' if len(run) == 1 else 's'}"


def stuck(run: Run) -> bool:
    """Whether somebody waits for a call that another rank has not made."""
    return any(one.on for one in standings(run))


def counts(run: Run, most: int = 4) -> str:
    alike: dict[tuple, list[int]] = {}
    for rank in run:
        found = tuple(Counter(call.op for call in rank.calls).items())
        alike.setdefault(found, []).append(rank.rank)
    if len(alike) == 1:
        who = "The only rank" if len(run) == 1 else f"Each of the {len(run)} ranks"
        return f"{who} made these calls: {made(next(iter(alike)))}."
    told = [f"{names(ranks).capitalize()}: {made(found)}" for found, ranks in alike.items()]
    more = [f"{len(told) - most} more groups of ranks made others"] if len(told) > most else []
    return f"The calls of {ranks(run)}. " + " ".join(f"{one}." for one in told[:most] + more)


def made(found: Sequence[tuple[str, int]], most: int = 5) -> str:
    rest = sum(count for _, count in found[most:])
    listed = [f"{count} {op}" for op, count in found[:most]] + ([f"{rest} others"] if rest else [])
    return ", ".join(listed) or "none"


def never_returned(run: Run) -> list[str]:
    found: dict[str, list[int]] = {}
    for call in run.calls:
        if is_never(call, run):
            name, line = call.op, call.line
            if call.waited:
                name, line = f"the wait for {call.op}", call.wait_line
            found.setdefault(f"{name}, line {line}, on ", []).append(call.rank)
    told = [what + names(ranks) for what, ranks in found.items()]
    return [f"Never returned: {'; '.join(told)}."] if told else []
