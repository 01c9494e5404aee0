"""A training that was killed and went on beside one that was not: the gap between their losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ddp_lessons.views.theme import (
    INK,
    LINE,
    PAPER,
    SERIES,
    SOFT,
    Picture,
    new_figure,
    picture,
    plain_axes,
)

APART = SERIES[0]
LEAST = 0.1  # the scale where there is no gap at all
Log = Sequence[Mapping[str, Any]]


def resumed(whole: Log, logs: Mapping[str, Log], *, killed: int, restored: int) -> Picture:
    """The loss of `whole`, step by step; below it, a row for each title, that log's loss minus it.

    A log is a list of lines that each have a `step` and a `loss`. `killed` is the step in which the
    others were killed, `restored` the step of the checkpoint from which they went on. Raises
    ValueError if there is no log, or if one has other steps than `whole`.
    """
    steps = [line["step"] for line in whole]
    if not steps or not logs:
        raise ValueError("give the log of a whole run, and at least one of a run that went on")
    for title, log in logs.items():
        if [line["step"] for line in log] != steps:
            raise ValueError(f"{title!r} has lines for other steps than the whole run")
    found = {title: _minus(log, whole) for title, log in logs.items()}
    figure = new_figure(7.8, 1.9 + 0.95 * len(found))
    grid = figure.add_gridspec(1 + len(found), 1, height_ratios=(1.1, *(1 for _ in found)))
    rows = [plain_axes(figure) for _ in range(1 + len(found))]
    for row, place in zip(rows, grid, strict=True):
        row.set_subplotspec(place)
        row.axvspan(restored, killed, color=SOFT, alpha=0.25, lw=0)
        row.axvspan(restored, killed, fill=False, ec=SOFT, lw=1)
        row.axvline(killed, color=INK, lw=1.5, ls=(0, (4, 2)))
        row.set_xlim(0, 1.02 * steps[-1])
        row.grid(axis="y", color=LINE, lw=0.6)
        row.set_axisbelow(True)
        if row is not rows[-1]:
            row.set_xticklabels([])
    rows[0].plot(steps, [line["loss"] for line in whole], color=INK, lw=2)
    rows[0].set_ylim(bottom=0)
    _head(rows[0], "Loss, not killed")
    _mark(rows[0], killed, restored)
    highest = max(abs(gap) for line in found.values() for gap in line) or LEAST
    for row, (title, line) in zip(rows[1:], found.items(), strict=True):
        colour = APART if any(line) else INK
        row.plot(steps, line, color=colour, lw=2, marker="o", ms=3.5, clip_on=False)
        row.set_ylim(-1.1 * highest, 1.1 * highest)
        row.locator_params(axis="y", nbins=4)
        said = ": difference to that loss; flat where nothing was lost" if row is rows[1] else ""
        _head(row, title + said)
    rows[-1].set_xlabel("step", color=INK, fontsize=10)
    return picture(figure, _sentence(found, killed, restored))


def _minus(log: Log, whole: Log) -> list[float]:
    return [one["loss"] - other["loss"] for one, other in zip(log, whole, strict=True)]


def _head(axes: Any, text: str) -> None:
    axes.set_title(text, color=INK, fontsize=10.5, fontweight="bold", loc="left", pad=4)


def _mark(axes: Any, killed: int, restored: int) -> None:
    axes.annotate(
        f"killed in step {killed}, goes on after step {restored}",
        (killed, axes.get_ylim()[1]),
        (6, -4),
        textcoords="offset points",
        va="top",
        color=INK,
        fontsize=10,
        fontweight="bold",
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1},
    )


def _sentence(found: Mapping[str, Sequence[float]], killed: int, restored: int) -> str:
    told = []
    for title, line in found.items():
        most = max(map(abs, line))
        told.append(f"{title}: " + (f"up to about {most:.1g}" if most else "0 in every line"))
    head = f"Killed in step {killed}, went on after step {restored}"
    return f"{head}. The loss minus the loss of the run that was not killed: {'; '.join(told)}."
