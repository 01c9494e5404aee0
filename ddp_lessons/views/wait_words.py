"""The sentence under the picture of who waits: where ranks stand, for whom, and in a circle."""

from __future__ import annotations

from collections.abc import Sequence

from ddp_lessons.stall import INSIDE, PAIRED, Standing, names, past, sentence

MOST = 8  # ranks of a circle that are listed
DDPS = {*INSIDE} - {"init_process_group", "monitored_barrier", "destroy_process_group"}


def needed(one: Standing, found: Sequence[Standing]) -> tuple[int, ...]:
    """For a rank inside DDP: the ranks that are not there. Every rank of its group must come, and
    which ranks these are is not recorded."""
    if one.kind != "inside" or one.on or one.function not in DDPS:
        return ()
    return tuple(other.rank for other in found if other.function != one.function)


def alike(found: Sequence[Standing]) -> list[list[Standing]]:
    """Those that stand alike and wait for the same ranks, in the order of their lowest rank."""
    groups: dict[tuple, list[Standing]] = {}
    for one in found:
        groups.setdefault((one.kind, one.what, one.place, one.on), []).append(one)
    return list(groups.values())


def in_time(told: str, over: bool) -> str:
    return past(told) if over else told


def circle(found: Sequence[Standing]) -> list[int]:
    """Ranks of which each waits for the next and the last for the first; empty if there is none."""
    on = {one.rank: one.on for one in found}

    def follow(path: list[int]) -> list[int]:
        for rank in on[path[-1]]:
            if rank == path[0]:
                return path
            if rank > path[0] and rank not in seen:
                seen.add(rank)
                if whole := follow([*path, rank]):
                    return whole
        return []

    for one in found:
        seen: set[int] = set()
        if whole := follow([one.rank]):
            return whole
    return []


def waits_told(found: Sequence[Standing], over: bool, most: int = 4) -> str:
    parts = []
    for group in alike(found):
        one = group[0]
        paired = one.call is not None and one.call.op in PAIRED
        whom = f", for {names(one.on)}" if one.on and not paired else ""
        parts.append(in_time(sentence(group), over) + whom)
    more = [f"{len(parts) - most} more"] if len(parts) > most else []
    text = "; ".join(parts[:most] + more)
    told = [f"{text[0].upper()}{text[1:]}."]
    lacking = [(one.rank, needed(one, found)) for one in found]
    if inside := [rank for rank, others in lacking if others]:
        whom = {other for _, others in lacking for other in others}
        can = "could not" if over else "cannot"
        told.append(f"DDP on {names(inside)} {can} go on without {names(whom)}.")
    ring = circle(found)
    if 1 < len(ring) <= MOST:
        steps = [f"{a} for {b}" for a, b in zip(ring, [*ring[1:], ring[0]], strict=True)]
        told.append(f"They wait in a circle: {', '.join(steps)}.")
    elif ring:
        told.append(f"{len(ring)} of them wait in a circle.")
    return " ".join(told)
