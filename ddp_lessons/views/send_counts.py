"""Bytes against the number of ranks: what the busiest rank sends, and what all send together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from ddp_lessons.run import Run
from ddp_lessons.views.messages import messages, sent
from ddp_lessons.views.theme import (
    INK,
    LINE,
    SERIES,
    SOFT,
    Picture,
    new_figure,
    picture,
    plain_axes,
)

NAIVE, RING = SERIES[:2]
Points = dict[int, float]  # number of ranks -> bytes, in multiples of the tensor


def busiest(naive: Sequence[Run], ring: Sequence[Run], half: bool = False) -> Picture:
    """What the busiest rank sends, and what all ranks send together, in multiples of the tensor S.

    Marks are counted from the sends of each run, lines are (N-1) S, 2 (N-1)/N S and 2 (N-1) S.
    `naive` are runs that add up a tensor through rank 0, `ring` runs on the same numbers of ranks
    that add up one as large around a ring. half: these make only the first half of it; twice what
    was counted is drawn hollow. Raises ValueError for runs that do not go together.
    """
    sizes = {run.world_size: max((m.bytes for m in messages(run)), default=0) for run in naive}
    same = sizes.keys() == {run.world_size for run in ring}
    if not (same and sizes and all(sizes.values())):
        raise ValueError("naive and ring are runs on the same numbers of ranks, from 2 up")
    most, whole = counted(naive, sizes, max), counted(naive, sizes, sum)
    mine, all_mine = counted(ring, sizes, max), counted(ring, sizes, sum)
    if half:
        full, all_full = doubled(mine), doubled(all_mine)
    else:
        full, all_full = mine, all_mine
    end = max(sizes)
    fine = [2 + step / 20 * (end - 2) for step in range(21)]

    figure = new_figure(8.6, 3.9)
    left, right = (
        _axes(part, title, sizes)
        for part, title in zip(
            figure.subfigures(1, 2),
            ("the busiest rank sends", "all ranks together send"),
            strict=True,
        )
    )
    left.plot(fine, [n - 1 for n in fine], color=NAIVE, lw=1.6)
    left.plot(fine, [2 * (n - 1) / n for n in fine], color=RING, lw=1.6)
    right.plot(fine, [2 * (n - 1) for n in fine], color=SOFT, lw=1.6)
    for axes, theirs, ours, ring_whole in (
        (left, most, mine, full),
        (right, whole, all_mine, all_full),
    ):
        axes.plot(*_xy(theirs), "s", color=NAIVE, ms=6.5)
        axes.plot(*_xy(ring_whole), "o", ms=11, mfc="none", mec=RING, mew=1.7)
        axes.plot(*_xy(ours), "o", color=RING, ms=5.5)
    told = "whole ring" if half else "ring"
    _label(left, end, most[end], "through rank 0:\n(N \N{MINUS SIGN} 1) S")
    _label(left, end, full[end], f"{told}:\n2 (N \N{MINUS SIGN} 1) / N S", 9)
    _label(right, end, whole[end], "both:\n2 (N \N{MINUS SIGN} 1) S")
    if half:
        _label(left, end, mine[end], "its first half", -7)
        _label(right, end, all_mine[end], "the ring's\nfirst half")
        figure.supxlabel(
            "filled: counted     hollow: twice the count", color=INK, fontsize=10, x=0.01, ha="left"
        )
    return picture(figure, _sentence(end, most, whole, full, all_full, half))


def counted(runs: Sequence[Run], sizes: dict[int, int], what: Callable) -> Points:
    """`what` (max or sum) of the bytes that each rank of each run sent, in multiples of S."""
    return {run.world_size: what(sent(run)) / sizes[run.world_size] for run in runs}


def doubled(points: Points) -> Points:
    return {n: 2 * value for n, value in points.items()}


def _axes(part: Any, title: str, numbers: Collection[int]) -> Any:
    axes = plain_axes(part)
    axes.set_title(title, color=INK, fontsize=11, fontweight="bold", loc="left")
    axes.set_xticks(sorted(numbers))
    axes.set_xlim(min(numbers) - 0.4, max(numbers) + 0.34 * (max(numbers) - min(numbers) + 2))
    axes.set_xlabel("ranks N", color=INK, fontsize=10, loc="left")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g} S")
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.grid(axis="y", color=LINE, lw=0.6)
    axes.set_axisbelow(True)
    return axes


def _xy(points: Points) -> tuple[list[int], list[float]]:
    return list(points), list(points.values())


def _label(axes: Any, x: float, y: float, text: str, up: float = 0) -> None:
    axes.annotate(
        text, (x, y), (13, up), textcoords="offset points", color=INK, fontsize=10, va="center"
    )


def _sentence(
    end: int, most: Points, whole: Points, full: Points, all_full: Points, half: bool
) -> str:
    same = whole == all_full
    counted_half = " (twice its counted first half)" if half else ""
    totals = (
        f"All ranks together send the same either way, {whole[end]:g} S."
        if same
        else f"All ranks together send {whole[end]:g} S and {all_full[end]:g} S."
    )
    return (
        f"On {end} ranks, the busiest rank sends {most[end]:g} times the tensor S through rank 0, "
        f"{full[end]:g} times in the ring{counted_half}. {totals}"
    )
