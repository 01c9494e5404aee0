"""The parameter gap: how far apart parameters that should be equal are, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import isfinite
from typing import Any

from ddp_lessons.run import Run, short
from ddp_lessons.views.theme import INK, LINE, SERIES, Picture, new_figure, picture, plain_axes

SAME = 1e-6  # a gap under this is rounding
MARKERS = ("o", "s", "^", "D", "v", "X")


def parameter_gap(runs: Mapping[str, Run | tuple[Run, Run]]) -> Picture:
    """The largest difference of any parameter after each step, a line for each title.

    Of a run: between its ranks. Of a pair of runs: between any rank of the one and rank 0 of the
    other. Every step must have recorded parameters, a flat list. Raises ValueError if none did, if
    not all recorded as many, and for a parameter that is no longer a finite number.
    """
    found = {title: gaps(run) for title, run in runs.items()}
    figure = new_figure(7.8, 3.4)
    axes = plain_axes(figure)
    top = max(max(line) for line in found.values())
    highest = top if top >= SAME else 1.0  # rounding does not fill the picture
    lines = list(found.values())
    for index, line in enumerate(lines):
        under = any(_touch(line, other) for other in lines[index + 1 :])
        axes.plot(
            range(1, len(line) + 1),
            line,
            color=_colour(index, line),
            marker=MARKERS[index % len(MARKERS)],
            # Of lines that lie on each other the lower one can be seen on both sides.
            ms=10 if under else 5,
            lw=6 if under else 2,
            clip_on=False,
        )
    _label(axes, found, highest)
    last = max(len(line) for line in found.values())
    axes.set_ylim(-0.03 * highest, 1.08 * highest)
    axes.set_xlim(0.5, last + 0.5)
    axes.set_xticks([step for step in range(1, last + 1) if step == 1 or step % 5 == 0])
    axes.axhline(0, color=LINE, lw=1, zorder=0)
    axes.grid(axis="y", color=LINE, lw=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("step", color=INK, fontsize=10)
    axes.set_title(_title(runs), color=INK, fontsize=11, fontweight="bold", loc="left")
    told = "; ".join(f"{title} {told_gap(line[-1])}" for title, line in found.items())
    return picture(figure, f"{_title(runs)} after step {last}: {told}.")


def _title(runs: Mapping[str, Run | tuple[Run, Run]]) -> str:
    others = {run[1].script.rpartition("/")[2] for run in runs.values() if isinstance(run, tuple)}
    if not others:
        return "Parameter gap between ranks"
    alike = len(others) == 1 and all(isinstance(run, tuple) for run in runs.values())
    return f"Parameter gap to {others.pop()}" if alike else "Parameter gap"


def gaps(run: Run | tuple[Run, Run]) -> list[float]:
    """For each step the largest difference of any parameter, as parameter_gap() means it."""
    one, other = run if isinstance(run, tuple) else (run, run)
    steps = _parameters(other)[0]
    ranks = _parameters(one)
    if {len(rank) for rank in ranks} != {len(steps)} or not steps:
        raise ValueError("every rank must have recorded `parameters` in each step, and as often")
    if isinstance(run, Run):
        return [_spread([rank[step] for rank in ranks]) for step in range(len(steps))]
    return [
        max(_spread([rank[step], values]) for rank in ranks) for step, values in enumerate(steps)
    ]


def _parameters(run: Run) -> list[list[list[float]]]:
    """By rank and step."""
    return [
        [r.values["parameters"] for r in rank.records if "parameters" in r.values] for rank in run
    ]


def _spread(lists: list[list[float]]) -> float:
    """The largest difference between entries at the same place."""
    if not all(isfinite(entry) for entries in lists for entry in entries):
        raise ValueError("a parameter is infinite or not a number: there is no gap to draw")
    return max(max(entries) - min(entries) for entries in zip(*lists, strict=True))


def _colour(index: int, line: list[float]) -> str:
    """Ink for a line that is zero all along."""
    return INK if max(line) < SAME else SERIES[index % len(SERIES)]


def _touch(line: list[float], other: list[float]) -> bool:
    """Whether one line hides some part of the other."""
    near = 0.01 * max(*line, *other, SAME)
    same = [abs(one - two) < near for one, two in zip(line, other, strict=False)]
    return any(map(all, pairwise(same)))


def _label(axes: Any, found: Mapping[str, list[float]], highest: float) -> None:
    """Name each line at its end; names that would overlap are pushed apart."""
    lowest = -1.0
    for title, line in sorted(found.items(), key=lambda item: item[1][-1]):
        level = max(line[-1] / highest, lowest)
        lowest = level + 0.1
        axes.annotate(
            f"{title}: {told_gap(line[-1])}",
            (len(line), line[-1]),
            (1.02, (level + 0.03) / 1.11),
            textcoords="axes fraction",
            va="center",
            color=INK,
            fontsize=11,
            fontweight="bold",
            annotation_clip=False,
        )


def told_gap(gap: float) -> str:
    """Two digits. Small gaps come from rounding, in which machines differ."""
    for limit in ("1e-6", "0.001"):
        if gap < float(limit):
            return f"under {limit}"
    return short(float(f"{gap:.2g}"))
