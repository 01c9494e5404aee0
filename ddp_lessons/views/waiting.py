"""Who waits where: a node a rank, what it does, and an arrow to each rank that it waits for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ddp_lessons import mismatch
from ddp_lessons.run import Run, say
from ddp_lessons.stall import Standing, names, sentence, source_line, standings
from ddp_lessons.text import short
from ddp_lessons.views.ends import failed, guilty, words
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
from ddp_lessons.views.wait_words import alike, in_time, needed, waits_told

EACH = 4  # ranks that have a row each; of more, those that stand alike share one
MOST = 8  # rows
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
WERE = {"hatched": "waited", "full": "at work", "dashed": "had ended", "empty": "not known"}


def waits(run: Run) -> Picture:
    """Where each rank stood when the run was stopped or failed, and for whom it waited.

    Of more than 4 ranks those that stood alike share a row. Raises ValueError if no rank waited for
    another and none was stopped.
    """
    found = stood(run)
    if all(rank.exitcode is not None for rank in run) and not any(map(waiting, found)):
        raise say(ValueError(nobody(run)))
    over = any(map(failed, run))
    made = rows(found)
    figure = new_figure(8.4, HIGH * len(made) + 0.55)
    axes = plain_axes(figure)
    axes.set_xticks([])
    axes.set_yticks([])
    apart = [y - target for y, row in enumerate(made) for target in (*row.on, *row.needs)]
    left = WIDE + 0.2 + bulge(max([0, *apart])) * (max([0, *apart]) > 0)
    for y, row in enumerate(made):
        _row(axes, y, row, over, left)
    for y, row in enumerate(made):
        for target in (*row.on, *row.needs):
            _arrow(axes, y, target, colour_of(row), sure=target in row.on)
    axes.set_xlim(-WIDE - 0.1 - bulge(max([0, *(-one for one in apart)])), 7.2)
    axes.set_ylim(len(made) - 0.45, -0.5)
    key = [f"arrow: {'waited' if over else 'waits'} for"] if any(row.on for row in made) else []
    if any(row.needs for row in made):
        key.append(f"dashed arrow: DDP {'needed' if over else 'needs'} it too")
    looks = {row.look for row in made}
    key += [
        f"{look}: {means}" for look, means in (WERE if over else LOOKS).items() if look in looks
    ]
    axes.set_xlabel("   ·   ".join(key), color=INK, fontsize=10, loc="left")
    return picture(figure, waits_told(found, over))


def stood(run: Run) -> list[Standing]:
    """The standings; for a rank that has ended, how it did and at which line of its script."""
    return [ended(one, run) if one.kind == "ended" else one for one in at_odds(run, standings(run))]


def ended(one: Standing, run: Run) -> Standing:
    rank = run[one.rank]
    failure = rank.failure
    source = source_line(run, failure.file, failure.line) if failure else ""
    return replace(one, what=words(rank, run), place="", source=source)


def waiting(one: Standing) -> bool:
    return one.kind in ("call", "inside")


def nobody(run: Run) -> str:
    """Why there is no picture of who waits."""
    first = guilty(run)
    how = f" {names(first)} {words(run[first[0]], run)}, and" if first else ""
    return f"there is nothing to draw:{how} no rank of this run was waiting for another"


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


def rows(found: Sequence[Standing]) -> list[Row]:
    """A row a rank, or a row for all that stand alike; of very many the first."""
    groups = [[one] for one in found] if len(found) <= EACH else alike(found)
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


def _row(axes: object, y: int, row: Row, over: bool, left: float) -> None:
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
    axes.text(
        *(0, y, name),
        color=INK,
        fontsize=10.5,
        fontweight="bold",
        ha="center",
        va="center",
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1.2},
        zorder=5,
    )
    does, source = said(row, over), "" if row.mixed else short(row.one.source, 62)
    rise = 0.15 if source else 0
    axes.text(left, y - rise, does, color=INK, fontsize=10.5, va="center")
    axes.text(left, y + 0.21, source, color=SOFT, fontsize=10, va="center", family=MONO)


def colour_of(row: Row) -> str:
    return rank_colour(row.ranks[0]) if len(row.ranks) == 1 else SOFT


def said(row: Row, over: bool) -> str:
    """What the ranks of a row do, and where: "waits in barrier, line 11"."""
    one = row.one
    if row.mixed:
        return f"{names(row.ranks)}: each somewhere else"
    who = [replace(one, rank=rank) for rank in row.ranks]
    told = in_time(sentence(who), over)
    return told if len(row.ranks) > 1 else told.partition(f"rank {one.rank} ")[2]


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
