"""Source lines x ranks: what each variable holds where."""

from __future__ import annotations

from typing import Any

from ddp_lessons.run import Run
from ddp_lessons.text import short
from ddp_lessons.views.theme import (
    INK,
    LINE,
    MONO,
    SOFT,
    WIDE,
    Picture,
    cell,
    new_figure,
    picture,
    plain_axes,
    rank_colour,
)


def memories(run: Run, name: str) -> Picture:
    """What the variable `name` held on each rank at each record() that names it.

    One row for each line that recorded it, under the source line that set it. Raises ValueError if
    no line did.
    """
    lines = sorted({r.line for r in run.records if name in r.values})
    if not lines:
        raise ValueError(f"no rank recorded {name!r}")
    held = {(r.rank, r.line): r.values[name] for r in run.records if name in r.values}
    labels = _labels(run, name, lines)
    figure = new_figure(min(WIDE, 3.9 + 2.2 * run.world_size), 0.75 + 0.52 * len(lines))
    axes = plain_axes(figure)
    axes.set_xlim(-2.15, run.world_size)
    axes.set_ylim(len(lines), -0.85)
    axes.set_xticks([])
    axes.set_yticks([])
    for rank in run:
        axes.text(
            rank.rank + 0.5,
            -0.35,
            f"memory of rank {rank.rank}",
            ha="center",
            va="center",
            color=INK,
            fontsize=11,
            fontweight="bold",
        )
    for row, line in enumerate(lines):
        axes.text(
            -2.13,
            row + 0.5,
            labels[line],
            ha="left",
            va="center",
            color=INK,
            fontsize=10,
            family=MONO,
        )
        axes.axhline(row, color=LINE, lw=0.8)
        for rank in run:
            _cell(axes, rank.rank, row, name, held.get((rank.rank, line)), held)
    return picture(figure, _sentence(run, name, held, lines))


def _labels(run: Run, name: str, lines: list[int]) -> dict[int, str]:
    """For each recording line the source line that set the variable before it, if there is one
    since the last recording line; else the recording line itself."""
    source, before, labels = run.source.splitlines(), 0, {}
    for line in lines:
        sets = [n for n in range(before + 1, line) if source[n - 1].strip().startswith(f"{name} =")]
        number = sets[-1] if sets else line
        text = source[number - 1].split("  #")[0].strip()
        labels[line] = f"{number:>3}  {text if len(text) <= 34 else text[:33] + '…'}"
        before = line
    return labels


def _cell(axes: Any, rank: int, row: int, name: str, value: Any, held: dict) -> None:
    if value is None:
        axes.text(
            rank + 0.5,
            row + 0.5,
            "never ran here",
            ha="center",
            va="center",
            color=SOFT,
            fontsize=10,
            style="italic",
        )
        return
    cell(axes, (rank + 0.04, row + 0.12, 0.92, 0.76), rank_colour(rank), 0.2)
    axes.text(
        rank + 0.5,
        row + 0.5,
        f"{name} = {short(value, 18)}",
        ha="center",
        va="center",
        color=INK,
        fontsize=10.5,
        family=MONO,
    )


def _sentence(run: Run, name: str, held: dict, lines: list[int]) -> str:
    last = [
        (rank.rank, [held[rank.rank, line] for line in lines if (rank.rank, line) in held])
        for rank in run
    ]
    told = [f"{short(values[-1], 24)} on rank {rank}" for rank, values in last if values]
    return f"At the end {name} is " + " and ".join(told) + "."
