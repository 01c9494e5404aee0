"""What usually brings ranks to stand where they do, and what to do about it: Standings to text."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ddp_lessons.mismatch import MISSING
from ddp_lessons.stall import BUILD, FORWARD, PAIRED, Standing, names


def cause(found: Sequence[Standing]) -> str:
    """What usually brings ranks to stand as these do, and what to do about it."""
    waiting = [one for one in found if one.kind == "inside" or one.kind == "call" and one.on]
    late = [one for one in found if one.rank in {rank for each in waiting for rank in each.on}]
    pairs = [one for one in waiting if one.call and one.call.op in PAIRED]
    functions = {one.function for one in waiting}
    if not waiting:
        return (
            "No rank was seen to wait for another. If they were at work, give them a longer "
            "timeout=."
        )
    if "init_process_group" in functions:
        return cause_of_joining(waiting)
    if functions & {*FORWARD, "_engine_run_backward"}:
        return cause_in_training(found, functions)
    if functions & BUILD:
        return "Every rank of the group must wrap its model in DDP, at the same point."
    if pairs and len(pairs) == len(waiting):
        return cause_of_pairs(pairs, late)
    busy = [one.rank for one in late if one.kind == "at work"]
    if len({(one.call.group, one.call.group_name) for one in waiting if one.call}) > 1 and not busy:
        return (
            "They wait in calls of different groups, each for the other. All ranks must make the "
            "calls of several groups in the same order."
        )
    if not busy:
        return MISSING
    be = "was" if len(busy) == 1 else "were"
    longer = f"If {names(busy)} {be} at work there, give the run a longer timeout=."
    return f"{longer} If not, {MISSING[0].lower()}{MISSING[1:]}"


def cause_of_joining(waiting: Sequence[Standing]) -> str:
    if not any(one.on for one in waiting):
        return (
            "All have called it, and they did not reach each other. A second init_process_group in "
            "one run finds the addresses of the first: join once, or give it a place of its own "
            "with init_method=."
        )
    return (
        "init_process_group waits until as many ranks as WORLD_SIZE (or world_size=) says have "
        "called it."
    )


def cause_in_training(found: Sequence[Standing], functions: Collection[str]) -> str:
    """Ranks that wait in DDP's forward or backward: some made fewer steps, or one goes alone."""
    inside = [one.rank for one in found if one.function in {*FORWARD, "_engine_run_backward"}]
    outside = [one.rank for one in found if one.rank not in inside]
    steps = (
        "all ranks must make the same number of steps. Give them the same number of batches, or "
        "put the loop in `with Join([model]):` from torch.distributed.algorithms.join."
    )
    if "_engine_run_backward" in functions:
        fewer = f" It looks as if {names(outside)} made fewer." if outside else ""
        return f"DDP averages the gradients inside backward(), so {steps}{fewer}"
    return (
        "In its forward, DDP may send buffers (those of BatchNorm, for example) and once the order "
        f"of its buckets, so {steps} To evaluate on one rank only, call model.module(x)."
    )


def cause_of_pairs(pairs: Sequence[Standing], late: Sequence[Standing]) -> str:
    nobody = [one.call for one in pairs if one.call.peer not in (None, *one.call.group)]
    if nobody:
        ranks = ", ".join(map(str, nobody[0].group))
        return f"There is no rank {nobody[0].peer} in that group: its ranks are {ranks}."
    ops = {one.call.op for one in pairs}
    circle = all(one in pairs for one in late)
    if circle and all("recv" in op for op in ops):
        return (
            "Each of them waits to receive, and no send that fits is on its way. Let one of them "
            "send first, or give each rank's send and recv to batch_isend_irecv together."
        )
    if circle and all("send" in op for op in ops):
        return (
            "On gloo a send waits until the other side receives, and here all send first. Let one "
            "of them receive first, or give each rank's send and recv to batch_isend_irecv "
            "together."
        )
    return "Each send needs one recv on the other side. On gloo both must have the same tag."
