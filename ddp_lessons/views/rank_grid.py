"""The rank grid: one cell a rank, one block a machine."""

from __future__ import annotations

import math

from ddp_lessons.run import Run
from ddp_lessons.views.theme import (
    EDGE,
    INK,
    SOFT,
    WIDE,
    Picture,
    cell,
    new_figure,
    picture,
    plain_axes,
    rank_colour,
)


def machines(run: Run) -> Picture:
    """Where each rank ran: its machine, its RANK and its LOCAL_RANK."""
    nodes = sorted({rank.node for rank in run})
    most = max(sum(rank.node == node for rank in run) for node in nodes)
    wide = min(most, 16 if most > 16 else 8)
    tall = math.ceil(most / wide)
    small = most > 16
    width = len(nodes) * (wide + 0.6) - 0.2
    side = min(0.56 if small else 1.6, WIDE / width)
    head = 0.16 + 0.25 / side  # for the names of the nodes
    figure = new_figure(width * side, (tall + 0.12 + head) * side)
    axes = plain_axes(figure)
    axes.set_xticks([])
    axes.set_yticks([])
    for column, node in enumerate(nodes):
        left = column * (wide + 0.6)
        _machine(axes, left, wide, tall, f"node {node}")
        for rank in (rank for rank in run if rank.node == node):
            x, y = left + rank.local_rank % wide, rank.local_rank // wide
            _cell(axes, x, y, rank, side)
    axes.set_xlim(-0.15, width - 0.15)
    axes.set_ylim(tall + 0.12, -head)
    return picture(figure, _sentence(run, nodes))


def _machine(axes: object, left: float, wide: int, tall: int, name: str) -> None:
    from matplotlib.patches import FancyBboxPatch

    axes.add_patch(
        FancyBboxPatch(
            (left - 0.05, -0.05),
            wide + 0.1,
            tall + 0.1,
            fill=False,
            ec=EDGE,
            lw=1.5,
            boxstyle="round,pad=0,rounding_size=0.12",
        )
    )
    axes.text(left, -0.14, name, color=INK, fontsize=11, fontweight="bold", va="bottom")


def _cell(axes: object, x: float, y: float, rank: object, side: float) -> None:
    """`side` is in inches: what fits there."""
    colour = SOFT if side <= 0.56 else rank_colour(rank.rank)  # 64 colours say nothing
    cell(axes, (x + 0.06, y + 0.06, 0.88, 0.88), colour, 0.2)
    if side < 1.1:
        middle = {"ha": "center", "va": "center"}
        axes.text(x + 0.5, y + 0.5, str(rank.rank), color=INK, fontsize=10, **middle)
        return
    axes.text(
        x + 0.5,
        y + 0.34,
        f"RANK {rank.rank}",
        color=INK,
        fontsize=13,
        fontweight="bold",
        ha="center",
        va="center",
    )
    axes.text(
        x + 0.5,
        y + 0.68,
        f"LOCAL_RANK\n{rank.local_rank}" if side < 1.4 else f"LOCAL_RANK {rank.local_rank}",
        color=INK,
        fontsize=10.5,
        ha="center",
        va="center",
    )


def _sentence(run: Run, nodes: list[int]) -> str:
    if len(nodes) == 1:
        return f"{run.world_size} ranks on one node: RANK and LOCAL_RANK are the same number."
    each = run.world_size // len(nodes)
    return (
        f"{run.world_size} ranks on {len(nodes)} nodes: RANK counts through all of them, "
        f"LOCAL_RANK starts again at 0 on each and ends at {each - 1}."
    )
