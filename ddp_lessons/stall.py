"""Which rank stands where, and whom it waits for: pure functions from a Run.

What a rank called comes from its ledger, where its host code stands from its Python stack. On gloo
a call that has not returned is one that waits. On NCCL a call returns when it has been handed to
the GPU, so there a rank waits at or after the first of its calls that not every member has made.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ddp_lessons import agreement
from ddp_lessons.blame import lost_peer
from ddp_lessons.run import Call, Frame, Meeting, Rank, Run

# Functions of torch that the reader's code is in, as the stack names them, and what to call that.
# The first that is found counts: an inner function stands before what calls it.
INSIDE = {
    "init_process_group": "waits in init_process_group",
    "_verify_param_shape_across_processes": "waits in DDP(...), which compares the shapes",
    "_sync_module_states": "waits in DDP(...), which sends the first rank's model to all",
    "_sync_buffers": "waits in the forward of DDP, which sends the first rank's buffers to all",
    "_pre_forward": "waits in the forward of DDP",
    "_engine_run_backward": "is in the backward pass",
    "monitored_barrier": "waits in monitored_barrier",
    "destroy_process_group": "is in destroy_process_group",
}
FORWARD = {"_sync_buffers", "_pre_forward"}
BUILD = {"_verify_param_shape_across_processes", "_sync_module_states"}
DDPS = {*FORWARD, *BUILD}  # FSDP has functions of these names too, but not in DDP's file
DDPS_FILE = "distributed.py"
# Where torch waits for what the ledger does not record: dist.nn and functional collectives.
COMMUNICATES = {"distributed_c10d.py", "_functional_collectives.py"}


PAIRED = ("send", "recv", "isend", "irecv", "send_object_list", "recv_object_list")


@dataclass(frozen=True)
class Standing:
    """Where a rank stood: `what` it did there, the reader's `file` and `line`, and its source.

    `place` is the line in words, with the file's name where that is not the script; `trace` are the
    reader's own frames that led there, outermost first. `on` are the ranks that it waits for,
    `call` the call that it waits in; `kind` is "call", "inside" (of torch, with the function's name
    in `function`), "at work", "ended" or "unknown".
    """

    rank: int
    kind: str
    what: str
    file: str | None = None
    line: int | None = None
    place: str = ""
    source: str = ""
    trace: tuple[Frame, ...] = ()
    function: str = ""
    on: tuple[int, ...] = ()
    call: Call | None = None


def standings(run: Run) -> list[Standing]:
    """Where each rank stood when the run was ended, in rank order."""
    book = agreement.book(rank.calls for rank in run)
    unmet = [*book.unmet(), *book.disagreements()]
    return [standing(rank, run, unmet) for rank in run]


def standing(rank: Rank, run: Run, unmet: Sequence[Meeting]) -> Standing:
    if rank.finished and rank.failure:
        where = place(run.script, rank.failure.file, rank.failure.line)
        return Standing(rank.rank, "ended", "left by sys.exit", place=where)
    if rank.finished:
        return Standing(rank.rank, "ended", "came to the end of the script")
    if rank.exitcode is not None and not lost_peer(rank):
        return Standing(rank.rank, "ended", "has ended")
    trace = tuple(frame for frame in rank.stack if frame.own)
    own = trace[-1] if trace else None
    call = waited_for(rank) or (enqueued(rank, unmet) if rank.device.startswith("cuda") else None)
    if call is not None:
        return in_call(rank, call, trace, run, unmet)
    inside = inside_of(rank)
    if inside is not None and own is not None:
        what = INSIDE[inside.function]
        on = absent(rank, run) if inside.function == "init_process_group" else ()
        return at(run, rank, "inside", what, trace, inside.function, on)
    last = rank.stack[-1] if rank.stack else None
    if own is not None and last.file in COMMUNICATES and not last.own:
        return at(run, rank, "inside", f"is in {last.function} of torch", trace, last.function)
    if own is not None:
        return at(run, rank, "at work", "is", trace)
    if rank.started is None:
        return Standing(rank.rank, "unknown", "had not started the script")
    if rank.called and not rank.joined:
        on = absent(rank, run)
        name = "init_process_group"
        return Standing(rank.rank, "inside", INSIDE[name], function=name, on=on)
    return Standing(rank.rank, "unknown", "was still running")


def inside_of(rank: Rank) -> Frame | None:
    """The frame of a function of torch that tells what its caller waits for, if there is one."""
    files = {frame.file for frame in rank.stack if not frame.own}
    for name in INSIDE:
        if name in DDPS and DDPS_FILE not in files:
            continue
        if name == "_engine_run_backward" and not rank.forwards:
            continue  # a backward without DDP waits for nobody
        for frame in rank.stack:
            if frame.function == name and not frame.own:
                return frame
    return None


def waited_for(rank: Rank) -> Call | None:
    """The last call of the rank that holds it, or held it: one that has not returned, or whose
    Work has not."""
    held = [c for c in rank.calls if c.returned is None or (c.waited and c.done is None)]
    last = rank.calls[-1] if rank.calls else None
    if not held and last and last.raised and (rank.failure or stands_in(rank, last)):
        held = [last]  # it waited there until its peer left
    return held[-1] if held else None


def stands_in(rank: Rank, call: Call) -> bool:
    """Whether the rank's stack, which may be older than its calls, ends in that call."""
    return any(not one.own and one.function == call.op for one in rank.stack)


def enqueued(rank: Rank, unmet: Sequence[Meeting]) -> Call | None:
    """The first call of the rank to which not every member has come."""
    calls = (call for meeting in unmet for call in meeting.calls if call.rank == rank.rank)
    return min(calls, key=lambda call: call.seq, default=None)


def in_call(
    rank: Rank, call: Call, trace: tuple[Frame, ...], run: Run, unmet: Sequence[Meeting]
) -> Standing:
    met = next((m for m in unmet if call in m.calls), None)
    line, file = call.line, call.file
    if rank.device.startswith("cuda"):
        what = f"waits at or after {told(call)}"
    elif call.waited:
        line, file = call.wait_line, call.wait_file
        what = f"waits for the {told(call)} of line {call.line}"
    elif met:
        what = f"waits in {told(call)}"
    else:
        what = f"is in {told(call)}"  # all have come: it is being done
    if trace and (trace[-1].file, trace[-1].line) == (file, line):
        source = trace[-1].source
    else:
        source, trace = source_line(run, file, line), ()  # its host code is elsewhere by now
    where = place(run.script, file, line)
    on = met.missing if met else ()
    return Standing(
        rank.rank, "call", what, file, line, where, source, trace, call.op, on=on, call=call
    )


def told(call: Call) -> str:
    """A call by its name and, for half of a pair, the other side and the tag."""
    tag = f" with tag {call.tag}" if call.tag else ""
    if "send" in call.op:
        return f"{call.op} to rank {call.peer}{tag}"
    if "recv" in call.op:
        who = "any rank" if call.peer is None else f"rank {call.peer}"
        return f"{call.op} from {who}{tag}"
    return call.op


def behind(meeting: Meeting) -> str:
    """What the missing ranks had made instead: "it had made 3 calls in the group, and this is the
    4th"; "" if this is their first, or if they differ."""
    if len(set(meeting.made)) != 1 or not meeting.calls[0].index:
        return ""
    made, index = meeting.made[0], meeting.calls[0].index
    it = "it" if len(meeting.missing) == 1 else "they"
    count = {0: "none", 1: "1 call"}.get(made, f"{made} calls")
    return f"{it} had made {count} in the group, and this is the {ordinal(index + 1)}"


def ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10)
    return f"{number}{ending or 'th'}"


def at(
    run: Run,
    rank: Rank,
    kind: str,
    what: str,
    trace: tuple[Frame, ...],
    function: str = "",
    on: tuple[int, ...] = (),
) -> Standing:
    own = trace[-1]
    where = place(run.script, own.file, own.line)
    return Standing(
        rank.rank, kind, what, own.file, own.line, where, own.source, trace, function, on
    )


def place(script: str, file: str | None, line: int | None) -> str:
    """ "line 11", or "line 3 of helper.py" for a file that is not the script."""
    if not line:
        return ""
    return f"line {line}" if file == script else f"line {line} of {file}"


def absent(rank: Rank, run: Run) -> tuple[int, ...]:
    """The ranks that have not called init_process_group, those included that nobody started."""
    never = [r.rank for r in run if not r.called]
    return (*never, *range(len(run), rank.expected or 0))


def source_line(run: Run, file: str | None, line: int | None) -> str:
    """A line of the script; "" for one of another file."""
    lines = run.source.splitlines()
    if file != run.script or not line or line > len(lines):
        return ""
    return lines[line - 1].strip()


def names(ranks: Collection[int]) -> str:
    """ "rank 1", "ranks 0 and 2", or "ranks 0, 1, 2 and 5 more"."""
    listed = [str(rank) for rank in sorted(ranks)]
    if len(listed) == 1:
        return f"rank {listed[0]}"
    if len(listed) > 8:
        return f"ranks {', '.join(listed[:3])} and {len(listed) - 3} more"
    return f"ranks {', '.join(listed[:-1])} and {listed[-1]}"


def grouped(found: Sequence[Standing]) -> list[list[Standing]]:
    """The standings, equal ones together, in the order of their lowest rank."""
    groups: dict[tuple, list[Standing]] = {}
    for one in found:
        groups.setdefault((one.kind, one.what, one.file, one.line), []).append(one)
    return list(groups.values())


def sentence(group: Sequence[Standing]) -> str:
    """Where these ranks, which stand alike, stood: "rank 0 waits in barrier, line 11"."""
    one, who = group[0], names([each.rank for each in group])
    what = one.what if len(group) == 1 else plural(one.what)
    if one.kind == "at work":
        what = f"{what} at {one.place}"
    elif one.place:
        what = f"{what}, {one.place}"
    return f"{who} {what}"


def past(told: str) -> str:
    """The same as it was: "rank 0 waits in barrier" becomes "rank 0 waited in barrier"."""
    for now, then in ((" waits ", " waited "), (" wait ", " waited "), (" is ", " was ")):
        told = told.replace(now, then, 1)
    return told.replace(" are ", " were ", 1)


def plural(what: str) -> str:
    """ "waits in barrier" for several ranks: "wait in barrier"."""
    verb, space, rest = what.partition(" ")
    verbs = {"waits": "wait", "is": "are", "has": "have", "was": "were"}
    return verbs.get(verb, verb) + space + rest
