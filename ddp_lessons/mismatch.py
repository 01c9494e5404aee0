"""Say which communication calls did not fit together: pure functions from a Run to text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ddp_lessons.operations import MAKES_GROUPS
from ddp_lessons.run import TO_ROOT, Call, Meeting, Run
from ddp_lessons.stall import names, place, source_line, told

# What differs, how it is called when there are several, and how to say it of one call.
VALUES: dict[str, tuple[str, Callable[[Call], str]]] = {
    "shape": ("shapes", lambda call: shape_of(call)),
    "dtype": ("dtypes", lambda call: str(call.dtype)),
    "reduce op": ("reduce ops", lambda call: str(call.reduce_op)),
    "root": ("roots", lambda call: f"{side(call)} {call.root}"),
    "detail": ("parts", lambda call: call.detail),
    "length": ("lengths", lambda call: str(call.shape[0])),
}


def shape_of(call: Call) -> str:
    """The shape; of one with more dimensions than a record keeps also how big it is."""
    more = f" ({call.bytes} bytes)" if len(call.shape) >= MOST_DIMENSIONS else ""
    return f"{list(call.shape)}{more}"


def side(call: Call) -> str:
    return "dst" if call.op in TO_ROOT else "src"


MOST_DIMENSIONS = 6  # in a record
MISSING = (
    "Every rank of the group must make the same calls. The usual cause is a call inside "
    "`if rank == ...`, or in a loop that is longer on some ranks."
)
CAUSES = {
    "op": "The calls of a group of ranks meet in the order in which each rank makes them, not by "
    "line. Look for a call inside `if rank == ...`, or in a loop that is longer on some ranks.",
    "shape": "All ranks must pass in the same shape. An uneven last batch is the usual cause: drop "
    "it, or pad to the longest and cut afterwards.",
    "length": "The lists must be equally long on all ranks.",
    "dtype": "All ranks must pass in the same dtype. Call .to(...) before the call.",
    "reduce op": "Every rank must ask for the same op. torch does not compare them: the numbers "
    "that come out can look right.",
    "root": "src and dst must be the same on all ranks. They are global ranks.",
    "detail": "All ranks must ask for the same sizes, in the same order.",
    "groups": "All ranks must make the same groups, in the same order.",
    "pair": "Both sides must use the same dtype: gloo copies bytes as they are.",
    "count": "What one rank sends must be what the other one expects, in number and dtype.",
    "missing": MISSING,
    "unpaired": "Each send needs one recv on the other side. On gloo both must have the same tag.",
}
ASTRAY = (
    "The calls stand on different lines. Calls meet in the order in which each rank makes them, so "
    "look for a call that only some ranks make."
)
ELSEWHERE = ("shape", "dtype", "reduce op", "length")  # root and detail often differ by an if


def explain(run: Run) -> tuple[int | None, str]:
    """The rank that stands alone (None if no single one does) and the report on the first calls
    that did not fit together."""
    meeting = run.mismatches[0]
    groups = sides(meeting)
    lines = [f"{run.script}: {sentence(run, meeting, groups)}"]
    for group in groups:
        lines += described(run, group)
    lines += parting(run, meeting)
    lines.append(f"  {cause(meeting)}")
    return odd_one(meeting, groups), "\n".join(lines)


def cause(meeting: Meeting) -> str:
    """What usually makes such calls meet. Two lines are often two steps of the script."""
    kind = kind_of(meeting)
    usual = CAUSES.get(kind, CAUSES["count"])
    lines = {(call.file, call.line) for call in meeting.calls}
    if kind in ELSEWHERE and len(lines) > 1:
        return f"{ASTRAY} If they are meant for each other: {usual[0].lower()}{usual[1:]}"
    return usual


def kind_of(meeting: Meeting) -> str:
    """Which rule of CAUSES is broken."""
    first = meeting.calls[0]
    if not meeting.differs:
        return "unpaired" if paired(first) else "missing"
    if meeting.differs == "detail" and first.op in MAKES_GROUPS:
        return "groups"
    return "pair" if meeting.differs == "dtype" and paired(first) else meeting.differs


def sides(meeting: Meeting) -> list[list[Call]]:
    """The calls, those that agree together, in the order of their lowest rank."""
    found: dict[object, list[Call]] = {}
    for call in meeting.calls:
        found.setdefault(value(meeting, call), []).append(call)
    return list(found.values())


def value(meeting: Meeting, call: Call) -> object:
    if meeting.differs == "op":
        return call.op
    if meeting.differs in VALUES:
        return VALUES[meeting.differs][1](call)
    return call.rank if meeting.differs else None


def sentence(run: Run, meeting: Meeting, groups: Sequence[Sequence[Call]]) -> str:
    first = groups[0][0]
    if not meeting.differs and paired(first):
        return f"nobody answered {told(first)}, called by rank {first.rank}, {where(run, [first])}."
    if not meeting.differs:
        who = f"{whose(meeting.calls)} did, {where(run, meeting.calls)}"
        return f"{names(meeting.missing)} never called {told(first)}, as {who}."
    if meeting.differs == "op":
        one, *others = [
            f"{whose(side)} called {told(side[0])}, {where(run, side)}" for side in groups
        ]
        return f"{one}, where {' and '.join(others)}."
    if meeting.differs in VALUES:
        plural, say = VALUES[meeting.differs]
        parts = [f"{say(side[0])} on {whose(side)}, {where(run, side)}" for side in groups]
        ops = " and ".join(dict.fromkeys(side[0].op for side in groups))
        return f"{ops} with different {plural}: {'; '.join(parts)}."
    parts = [f"{sized(side[0])} on {whose(side)}, {where(run, side)}" for side in groups]
    plural = "dtypes" if meeting.differs == "dtype" else "sizes"
    return f"different {plural}: {'; '.join(parts)}."


def sized(call: Call) -> str:
    """A call by its name, and half of a pair with the bytes that it sends or expects."""
    return f"{told(call)} of {call.bytes} bytes" if paired(call) else told(call)


def whose(calls: Sequence[Call]) -> str:
    return names([call.rank for call in calls])


def where(run: Run, calls: Sequence[Call]) -> str:
    """The lines of these calls: "line 11", or "line 3 of helper.py" outside the script."""
    found = sorted({(call.file, call.line) for call in calls})
    return " and ".join(place(run.script, file, line) for file, line in found)


def described(run: Run, side: Sequence[Call]) -> list[str]:
    """One side's call with all that it passed in, and its line in the reader's file."""
    call = side[0]
    lines = [f"  {whose(side)}, {call.file}, line {call.line}: {call.told}"]
    if call.detail:
        lines[0] += f", {call.detail}"
    source = source_line(run, call.file, call.line)
    return [*lines, f"    {source}"] if source else lines


def parting(run: Run, meeting: Meeting) -> list[str]:
    """Where the ranks' calls in this group first met from different lines, if that was before."""
    first = meeting.calls[0]
    if paired(first):
        return []
    by_index: dict[int, list[Call]] = {}
    for rank in first.group:
        for call in run[rank].calls:
            aside = paired(call) or call.op in MAKES_GROUPS
            if call.group_name == first.group_name and not aside:
                by_index.setdefault(call.index, []).append(call)
    for index in sorted(by_index):
        if index >= first.index:
            return []
        if len({(call.file, call.line) for call in by_index[index]}) > 1:
            met = "; ".join(
                f"{told(call)}, line {call.line}, on rank {call.rank}" for call in by_index[index]
            )
            return [f"  Calls from different lines met before that, and they fitted: {met}."]
    return []


def paired(call: Call) -> bool:
    return "send" in call.op or "recv" in call.op


def odd_one(meeting: Meeting, groups: Sequence[Sequence[Call]]) -> int | None:
    """The one rank that is not like all the others, of three or more."""
    if not meeting.differs:
        return meeting.missing[0] if len(meeting.missing) == 1 else None
    alone = [side[0].rank for side in groups if len(side) == 1]
    return alone[0] if len(alone) == 1 and len(groups) == 2 else None
