"""Lanes: one a rank, time from left to right."""

from __future__ import annotations

from ddp_lessons.run import Run
from ddp_lessons.views.theme import (
    INK,
    LINE,
    PAPER,
    SOFT,
    Picture,
    new_figure,
    picture,
    plain_axes,
    rank_colour,
)


def meeting(run: Run) -> Picture:
    """How the ranks met: when each started, called init_process_group, and was let go.

    Raises ValueError if some rank never joined a group: there was no meeting.
    """
    if any(rank.called is None or rank.joined is None for rank in run):
        raise ValueError("not every rank of this run joined a process group")
    figure, axes = _lanes(run, height=0.62)
    zero = min(rank.started for rank in run)
    last = max(rank.called for rank in run) - zero
    end = max(rank.joined for rank in run) - zero
    for rank in run:
        y, colour = rank.rank, rank_colour(rank.rank)
        start, call, free = (t - zero for t in (rank.started, rank.called, rank.joined))
        axes.plot([start, call], [y, y], color=colour, lw=3, solid_capstyle="butt")
        axes.barh(
            y,
            free - call,
            left=call,
            height=0.42,
            color=PAPER,
            edgecolor=colour,
            hatch="////",
            lw=1.5,
        )
        axes.plot([start], [y], "|", color=colour, ms=16, mew=3)
        axes.plot([free], [y], "o", color=colour, ms=9, zorder=4)
    axes.axvline(last, color=SOFT, lw=1.2, ls=(0, (3, 3)), zorder=0)
    axes.text(last, -0.5, "the last rank calls ", ha="right", va="bottom", color=SOFT, fontsize=10)
    _name_parts(axes, run, zero, end)
    axes.set_xlim(-0.01 * end, 1.17 * end)
    axes.set_ylim(run.world_size - 0.45, -0.95)
    axes.set_xlabel("seconds", color=INK, fontsize=10)
    late = max(run, key=lambda rank: rank.called)
    waited = all(rank.joined >= late.called for rank in run)
    return picture(
        figure,
        f"Rank {late.rank} called init_process_group last. "
        f"{'No rank' if waited else 'Some rank'} left before that; hatched is the time of waiting.",
    )


def _name_parts(axes: object, run: Run, zero: float, end: float) -> None:
    """Say once what each part of a lane is: where it is longest."""
    first = min(run, key=lambda rank: rank.called)
    late = max(run, key=lambda rank: rank.called - rank.started)
    under = {"color": INK, "fontsize": 10, "va": "center", "ha": "center"}
    middle = (first.called + first.joined) / 2 - zero
    paper = {"facecolor": PAPER, "edgecolor": "none", "pad": 2}
    axes.text(middle, first.rank, "waits in init_process_group", bbox=paper, zorder=5, **under)
    middle = (late.started + late.called) / 2 - zero
    axes.text(middle, late.rank - 0.26, "started, has not called yet", **under)
    for rank in run:
        look = {"color": INK, "fontsize": 10, "va": "center"}
        axes.text(rank.joined - zero + 0.02 * end, rank.rank, "goes on", **look)


def moments(run: Run, name: str) -> Picture:
    """When each rank recorded `name`, counted from the first of them.

    Raises ValueError if no rank recorded it.
    """
    times = {r.rank: [rec.time for rec in r.records if rec.name == name] for r in run}
    if not any(times.values()):
        raise ValueError(f"no rank recorded {name!r}")
    figure, axes = _lanes(run, height=0.42)
    zero = min(min(found) for found in times.values() if found)
    for rank, found in times.items():
        axes.axhline(rank, color=LINE, lw=1.2, zorder=0)
        for when in found:
            axes.plot([when - zero], [rank], "o", color=rank_colour(rank), ms=10)
            axes.annotate(
                f"{(when - zero) * 1000:.0f} ms",
                (when - zero, rank),
                (0, 8),
                textcoords="offset points",
                ha="center",
                color=INK,
                fontsize=10,
            )
    axes.set_ylim(run.world_size - 0.5, -0.5)
    axes.margins(x=0.12)
    axes.set_xlabel("time \N{RIGHTWARDS ARROW}", color=INK, fontsize=10, loc="right")
    axes.set_xticks([])
    last = max((found[-1], rank) for rank, found in times.items() if found)[1]
    return picture(
        figure,
        f'Rank {last} recorded "{name}" last; the rows are in rank order all the same.',
    )


def _lanes(run: Run, height: float) -> tuple:
    figure = new_figure(7.6, 0.9 + height * run.world_size)
    axes = plain_axes(figure)
    axes.set_yticks(range(run.world_size), [f"rank {rank.rank}" for rank in run])
    for label in axes.get_yticklabels():
        label.set_fontweight("bold")
    axes.grid(axis="x", color=LINE, lw=0.6)
    axes.set_axisbelow(True)
    return figure, axes
