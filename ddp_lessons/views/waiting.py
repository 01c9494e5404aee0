"""Who waits where: a node a rank, what it does, and an arrow to each rank that it waits for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ddp_lessons import mismatch
from ddp_lessons.run import Run
from ddp_lessons.stall import PAIRED, Standing, names, sentence, standings
from ddp_lessons.text import ending, short
from ddp_lessons.views.theme import (
    INK,
    MONO,
    PAPER,
    SOFT,
    Picture,
    new_figure,
    picture,
    plain_axes,
    rank_colour,
)

MOST = 8  # ranks that have a row each; of more, those that stand alike share one
HIGH = 0.62  # inches between two rows
WIDE, TALL = 0.4, 0.27  # half a node, in inches and in rows


@dataclass(frozen=True)
class Row:
    """Ranks that stand alike. `on`: the numbers of the rows that they wait for. `needs`: of those
    without which DDP, that these ranks are in, cannot go on."""

    ranks: tuple[int, ...]
    one: Standing
    on: tuple[int, ...] = ()
    needs: tuple[int, ...] = ()
    mixed: bool = False  # they do not stand alike: the last row of very many

    @property
    def look(self) -> str:
        looks = {"at work": "full", "ended": "dashed", "unknown": "empty"}
        return looks.get(self.one.kind, "hatched")


LOOKS = {"hatched": "waits", "full": "at work", "dashed": "has ended", "empty": "not known"}


def waits(run: Run) -> Picture:
    """Where each rank stood when the run was stopped, and for whom it waited.

    Of more than 8 ranks those that stood alike share a row. Raises ValueError if no rank was
    stopped: then nobody waited for ever.
    """
    if all(rank.exitcode is not None for rank in run):
        raise ValueError("no rank of this run was stopped: each came to its own end")
    found = at_odds(run, standings(run))
    made = rows(found)
    figure = new_figure(8.4, HIGH * len(made) + 0.55)
    axes = plain_axes(figure)
    axes.set_xticks([])
    axes.set_yticks([])
    apart = [y - target for y, row in enumerate(made) for target in (*row.on, *row.needs)]
    left = WIDE + 0.2 + bulge(max([0, *apart])) * (max([0, *apart]) > 0)
    for y, row in enumerate(made):
        _row(axes, y, row, run, left)
    for y, row in enumerate(made):
        for target in (*row.on, *row.needs):
            _arrow(axes, y, target, colour_of(row), sure=target in row.on)
    axes.set_xlim(-WIDE - 0.1 - bulge(max([0, *(-one for one in apart)])), 7.2)
    axes.set_ylim(len(made) - 0.45, -0.5)
    key = ["arrow: waits for"]
    if any(row.needs for row in made):
        key.append("dashed arrow: DDP needs it too")
    looks = {row.look for row in made}
    key += [f"{look}: {means}" for look, means in LOOKS.items() if look in looks]
    axes.set_xlabel("   ·   ".join(key), color=INK, fontsize=9.5, loc="left")
    return picture(figure, _told(found))


def at_odds(run: Run, found: Sequence[Standing]) -> list[Standing]:
    """The standings; of calls that met and do not fit together each waits for the other's."""
    on: dict[tuple[int, int], tuple[int, ...]] = {}
    for meeting in run.mismatches:
        for side in mismatch.sides(meeting):
            others = tuple(call.rank for call in meeting.calls if call not in side)
            on |= {(call.rank, call.seq): others for call in side}
    return [
        replace(one, on=one.on or on.get((one.rank, one.call.seq), ())) if one.call else one
        for one in found
    ]


def needed(one: Standing, found: Sequence[Standing]) -> tuple[int, ...]:
    """For a rank inside DDP: the ranks that are not there. Every rank of its group must come, and
    which ranks these are is not recorded."""
    if one.kind != "inside" or one.on or one.function == "destroy_process_group":
        return ()
    return tuple(other.rank for other in found if other.function != one.function)


def rows(found: Sequence[Standing]) -> list[Row]:
    """A row a rank, or a row for all that stand alike; of very many the first."""
    groups = [[one] for one in found] if len(found) <= MOST else alike(found)
    if len(groups) > MOST:
        rest = [one for group in groups[MOST - 1 :] for one in group]
        groups = [*groups[: MOST - 1], rest]
    home = {one.rank: y for y, group in enumerate(groups) for one in group}
    return [
        Row(
            tuple(one.rank for one in group),
            group[0],
            tuple(sorted({home[r] for one in group for r in one.on} - {y})),
            tuple(sorted({home[r] for one in group for r in needed(one, found)} - {y})),
            mixed=any(one.what != group[0].what for one in group),
        )
        for y, group in enumerate(groups)
    ]


def alike(found: Sequence[Standing]) -> list[list[Standing]]:
    """Those that stand alike and wait for the same ranks, in the order of their lowest rank."""
    groups: dict[tuple, list[Standing]] = {}
    for one in found:
        groups.setdefault((one.kind, one.what, one.place, one.on), []).append(one)
    return list(groups.values())


def _row(axes: object, y: int, row: Row, run: Run, left: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    colour = colour_of(row)
    look = {"fc": PAPER, "ec": colour, "lw": 1.6}
    if row.look == "hatched":
        look["hatch"] = "/////"
    elif row.look == "dashed":
        look |= {"ec": SOFT, "ls": (0, (2, 2))}
    elif row.look == "full":
        look["fc"] = colour
    high = 2 * TALL
    box = FancyBboxPatch(
        (-WIDE, y - TALL), 2 * WIDE, high, boxstyle="round,pad=0,rounding_size=0.1", **look
    )
    box.set_mutation_aspect(1 / HIGH)
    axes.add_patch(box)
    name = f"rank {row.ranks[0]}" if len(row.ranks) == 1 else f"{len(row.ranks)} ranks"
    full = row.look == "full"
    axes.text(
        *(0, y, name),
        color=PAPER if full else INK,
        fontsize=10.5,
        fontweight="bold",
        ha="center",
        va="center",
        bbox=None if full else {"facecolor": PAPER, "edgecolor": "none", "pad": 1.2},
        zorder=5,
    )
    does, source = said(row, run), "" if row.mixed else short(row.one.source, 62)
    rise = 0.15 if source else 0
    axes.text(left, y - rise, does, color=INK, fontsize=10.5, va="center")
    axes.text(left, y + 0.21, source, color=SOFT, fontsize=9.5, va="center", family=MONO)


def colour_of(row: Row) -> str:
    return rank_colour(row.ranks[0]) if len(row.ranks) == 1 else SOFT


def said(row: Row, run: Run) -> str:
    """What the ranks of a row do, and where: "waits in barrier, line 11"."""
    one = row.one
    if row.mixed:
        return f"{names(row.ranks)}: each somewhere else"
    if len(row.ranks) > 1:
        who = [replace(one, rank=rank) for rank in row.ranks]
        return sentence(who)
    if one.kind == "ended" and run[one.rank].exitcode is not None and not run[one.rank].finished:
        return f"has ended: {ending(run[one.rank])}"
    return sentence([one]).partition(f"rank {one.rank} ")[2]


def bulge(rows_apart: int) -> float:
    """How far an arrow stands out, in inches."""
    return 0.17 + 0.1 * rows_apart


def _arrow(axes: object, start: int, end: int, colour: str, sure: bool) -> None:
    """Down on the left side, up on the right: a circle of waiting looks like one."""
    from matplotlib.patches import FancyArrowPatch

    down = 1 if end > start else -1
    x = -WIDE * down
    a, b = start + 0.1 * down, end - 0.1 * down
    rad = 2 * bulge(abs(end - start)) / (abs(b - a) * HIGH)
    axes.add_patch(
        FancyArrowPatch(
            *((x, a), (x, b)),
            connectionstyle=f"arc3,rad={rad:.3f}",
            arrowstyle="-|>,head_length=6,head_width=3.5",
            shrinkA=0,
            shrinkB=1,
            color=colour,
            lw=1.8,
            ls="-" if sure else (0, (2.5, 1.5)),
            zorder=4,
        )
    )


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


def _told(found: Sequence[Standing], most: int = 4) -> str:
    parts = []
    for group in alike(found):
        one = group[0]
        paired = one.call is not None and one.call.op in PAIRED
        whom = f", for {names(one.on)}" if one.on and not paired else ""
        parts.append(sentence(group) + whom)
    more = [f"{len(parts) - most} more"] if len(parts) > most else []
    text = "; ".join(parts[:most] + more)
    words = [f"{text[0].upper()}{text[1:]}."]
    lacking = [(one.rank, needed(one, found)) for one in found]
    if inside := [rank for rank, others in lacking if others]:
        whom = {other for _, others in lacking for other in others}
        words.append(f"DDP on {names(inside)} cannot go on without {names(whom)}.")
    ring = circle(found)
    if 1 < len(ring) <= MOST:
        steps = [f"{a} for {b}" for a, b in zip(ring, [*ring[1:], ring[0]], strict=True)]
        words.append(f"They wait in a circle: {', '.join(steps)}.")
    elif ring:
        words.append(f"{len(ring)} of them wait in a circle.")
    return " ".join(words)
