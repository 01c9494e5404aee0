"""One training step as lanes: what each rank computed, and what travelled meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ddp_lessons.run import Run
from ddp_lessons.views.exposure import Step, joined, length, matched, without
from ddp_lessons.views.theme import (
    INK,
    LINE,
    PAPER,
    Picture,
    new_figure,
    picture,
    plain_axes,
    rank_colour,
)

HIGH = 0.24  # inches of a bar
LANE, HEAD = 0.72, 0.56  # inches of a rank's two rows of bars, and of a run's title


def timeline(runs: Mapping[str, Run]) -> Picture:
    """One traced step of each run, one below the other, on one scale of time.

    A lane a rank: above, what it computed (forward, backward with a tick where a gradient was
    ready, step); below, the all-reduce of each bucket, hatched where it is exposed: where it was
    under way and the rank computed nothing. From the spans of trace(), as exposure.matched() reads
    and chooses them; raises its ValueError.
    """
    found = dict(zip(runs, matched(list(runs.values())), strict=True))
    tall = sum(HEAD + LANE * len(those) for those in found.values())
    figure = new_figure(8.6, tall + 0.7)
    axes = plain_axes(figure)
    last = max(one.update[1] - _zero(those) for those in found.values() for one in those)
    y, ticks = 0.0, {}
    for title, those in found.items():
        axes.text(
            0, y + 0.16, title, color=INK, fontsize=11.5, fontweight="bold", va="center", zorder=5
        )
        for one in those:
            top = y + HEAD + 0.12 + LANE * those.index(one)
            ticks[top + HIGH / 2 + 0.02] = f"rank {one.rank}"
            _lane(axes, one, _zero(those), top, last, named=one is those[0])
        y += HEAD + LANE * len(those)
    axes.set_yticks(list(ticks), list(ticks.values()))
    for label in axes.get_yticklabels():
        label.set_fontweight("bold")
    _time_axis(axes, last)
    axes.set_xlim(-0.005 * last, last * 1.17)
    axes.set_ylim(y + 0.1, 0)
    return picture(figure, _sentence(found))


def _zero(those: Sequence[Step]) -> float:
    return min(one.forward[0] for one in those)


def _lane(axes: Any, one: Step, zero: float, top: float, last: float, named: bool) -> None:
    """The two rows of one rank, from `top` down."""
    colour = rank_colour(one.rank)
    work = (one.backward[0], one.computed)
    for name, (begin, end), strength in (
        ("forward", one.forward, 0.35),
        ("backward", work, 0.7),
        ("step", one.update, 1.0),
    ):
        box = {"left": begin - zero, "height": HIGH}
        axes.barh(top, end - begin, color=colour, alpha=strength, edgecolor="none", **box)
        axes.barh(top, end - begin, color="none", edgecolor=colour, lw=1, **box)
        if named:
            middle = (begin + end) / 2 - zero
            axes.text(
                middle,
                top - HIGH / 2 - 0.05,
                name,
                color=INK,
                fontsize=10,
                ha="center",
                va="bottom",
            )
    for moment in one.gradients:
        axes.plot([moment - zero] * 2, [top - 0.16, top + 0.16], color=INK, lw=1.6, zorder=4)
    _sent(axes, one, zero, top + HIGH + 0.04)
    exposed, whole = length(one.exposed), length(joined(one.sent))
    axes.text(
        last * 1.015,
        top + HIGH / 2 + 0.02,
        f"exposed:\n{exposed * 1000:.0f} of {whole * 1000:.0f} ms",
        color=INK,
        fontsize=10,
        va="center",
    )


def _sent(axes: Any, one: Step, zero: float, y: float) -> None:
    """The all-reduces of one rank: filled where its backward hides them, hatched where not."""
    colour = rank_colour(one.rank)
    for number, stretch in enumerate(one.sent):
        shown = [part for part in one.exposed if part[0] < stretch[1] and stretch[0] < part[1]]
        bare = [(max(a, stretch[0]), min(b, stretch[1])) for a, b in shown]
        for begin, end in without([stretch], bare):
            box = {"left": begin - zero, "height": HIGH}
            axes.barh(y, end - begin, color=colour, alpha=0.25, edgecolor="none", **box)
        for begin, end in bare:
            box = {"left": begin - zero, "height": HIGH}
            look = {"color": PAPER, "edgecolor": colour, "hatch": "/////", "lw": 0}
            axes.barh(y, end - begin, **look, **box)
        begin, end = stretch
        axes.barh(
            y, end - begin, left=begin - zero, height=HIGH, color="none", edgecolor=colour, lw=1.3
        )
        axes.text(
            (begin + end) / 2 - zero,
            y,
            str(number),
            color=INK,
            fontsize=10,
            fontweight="bold",
            ha="center",
            va="center",
            zorder=5,
            bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1.2},
        )


def _time_axis(axes: Any, last: float) -> None:
    from matplotlib.ticker import MaxNLocator

    ticks = [tick for tick in MaxNLocator(6).tick_values(0, last) if 0 <= tick <= last * 1.001]
    axes.set_xticks(ticks, [f"{tick * 1000:.4g}" for tick in ticks])
    axes.grid(axis="x", color=LINE, lw=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel(
        "milliseconds   ·   tick: a gradient is ready   ·   number: all-reduce of that bucket\n"
        "hatched: exposed, the rank has nothing to compute meanwhile",
        color=INK,
        fontsize=10,
    )


def _sentence(found: Mapping[str, Sequence[Step]]) -> str:
    """Order only: it must be the same on every machine."""
    told = [f"{title}: {_told(those)}" for title, those in found.items()]
    every = [one for those in found.values() for one in those]
    if all(one.update[0] >= max(end for _, end in one.sent) for one in every):
        told.append("Each step begins after the last all-reduce has ended.")
    if any(one.delay for one in every):
        told.append("A delay in the communication hook plays a slow network.")
    return " ".join(told)


def _told(those: Sequence[Step]) -> str:
    counts = {len(one.sent) for one in those}
    count = f"{counts.pop()} all-reduces" if counts != {1} else "1 all-reduce"
    early = [one.rank for one in those if one.early]
    if not early:
        return f"{count}, begun after the last gradient was ready, so all of it is exposed."
    who = "" if len(early) == len(those) else f" on rank {', '.join(map(str, early))}"
    return (
        f"{count}, the first begun{who} while the backward still computed, "
        "so only a part is exposed."
    )
