"""The rank grid: one cell a rank, one block a machine."""

from __future__ import annotations

import math

from ddp_lessons.run import Run
from ddp_lessons.views.theme import (
    INK,
    LINE,
    Picture,
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
    side = 0.56 if small else 1.2
    width, height = len(nodes) * (wide + 0.6) - 0.2, tall + 0.85
    figure = new_figure(width * side, height * side)
    axes = plain_axes(figure)
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    for column, node in enumerate(nodes):
        left = column * (wide + 0.6)
        _machine(axes, left, wide, tall, f"node {node}")
        for rank in (rank for rank in run if rank.node == node):
            x, y = left + rank.local_rank % wide, rank.local_rank // wide
            _cell(axes, x, y, rank, small)
    axes.set_xlim(-0.15, width - 0.15)
    axes.set_ylim(tall + 0.15, -0.7)
    return picture(figure, _sentence(run, nodes))


def _machine(axes: object, left: float, wide: int, tall: int, name: str) -> None:
    from matplotlib.patches import FancyBboxPatch

    axes.add_patch(
        FancyBboxPatch(
            (left - 0.05, -0.05),
            wide + 0.1,
            tall + 0.1,
            fill=False,
            ec=LINE,
            lw=1.5,
            boxstyle="round,pad=0,rounding_size=0.12",
        )
    )
    axes.text(left, -0.2, name, color=INK, fontsize=11, fontweight="bold", va="bottom")


def _cell(axes: object, x: float, y: float, rank: object, small: bool) -> None:
    from matplotlib.patches import Rectangle

    colour = rank_colour(rank.node if small else rank.rank)  # 64 colours say nothing
    axes.add_patch(Rectangle((x + 0.06, y + 0.06), 0.88, 0.88, fc=colour, alpha=0.18, ec="none"))
    axes.add_patch(Rectangle((x + 0.06, y + 0.06), 0.88, 0.88, fill=False, ec=colour, lw=1.5))
    if small:
        axes.text(
            x + 0.5, y + 0.5, str(rank.rank), color=INK, fontsize=10, ha="center", va="center"
        )
        return
    axes.text(
        x + 0.5,
        y + 0.34,
        f"RANK {rank.rank}",
        color=INK,
        fontsize=12,
        fontweight="bold",
        ha="center",
        va="center",
    )
    axes.text(
        x + 0.5,
        y + 0.68,
        f"LOCAL_RANK {rank.local_rank}",
        color=INK,
        fontsize=9,
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
