"""The ring, step by step: a still picture of all steps, and frames in which chunks move."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from ddp_lessons.run import Run
from ddp_lessons.views.player import Player
from ddp_lessons.views.ring_states import Chunk, Move, State, complete, replayed
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

MOST = 8  # ranks


def ring(run: Run) -> Player:
    """The chunks of a ring's first half, as its ranks recorded them, step by step.

    From one record "start" (chunks: the numbers of each chunk) and one record "step" a step (chunks
    again, and chunk: which of them has come in) on each rank, and from the sends of the run. Raises
    ValueError for more than 8 ranks, and if a record is not the sum that the sends lead to.
    """
    if run.world_size > MOST:
        raise ValueError(f"at most {MOST} ranks can be drawn, not {run.world_size}")
    states, moves = replayed(run)
    frames = [partial(_frame, states, moves, 0, False)]
    for step in range(1, len(states)):
        frames += [partial(_frame, states, moves, step, True)]
        frames += [partial(_frame, states, moves, step, False)]
    return Player(_still(states), frames)


# The still picture: one small grid a state


def _still(states: Sequence[State]) -> Picture:
    ranks = len(states[0])
    beside = max(1, min(len(states), 20 // (ranks + 1)))
    rows = math.ceil(len(states) / beside)
    width, height = beside * (ranks + 0.6) + 1.2, rows * (ranks + 2.2)
    inch = min(0.46, 8.4 / width)
    figure = new_figure(max(width * inch, 6.4), height * inch * 0.82 + 0.3)
    axes = _plain(figure, (-1.5, max(width, 6.4 / inch) - 1.5), (height - 0.2, -0.1))
    for step, state in enumerate(states):
        left = step % beside * (ranks + 0.6)
        top = step // beside * (ranks + 2.2)
        title = f"after step {step}" if step else "start"
        axes.text(left + 0.05, top + 0.4, title, color=INK, fontsize=10.5, fontweight="bold")
        for rank, chunks in enumerate(state):
            name = f"rank {rank}" if ranks <= 4 and rank == 0 else str(rank)
            axes.text(
                left + rank + 0.5, top + 1, name, color=INK, fontsize=9, ha="center", va="center"
            )
            for number, chunk in enumerate(chunks):
                _cell(axes, left + rank, top + 1.3 + number, chunk, ranks, 8.5)
        if step % beside == 0:
            for number in range(ranks):
                y = top + 1.8 + number
                axes.text(
                    -0.12, y, f"chunk {number}", color=INK, fontsize=9, ha="right", va="center"
                )
    axes.set_xlabel(_KEY, color=INK, fontsize=10, loc="left")
    return picture(figure, _whole(states))


_KEY = "colour: whose numbers     thick edge: added in this step     pale: passed on"


def _plain(figure: Any, xs: tuple[float, float], ys: tuple[float, float]) -> Any:
    axes = plain_axes(figure)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlim(*xs)
    axes.set_ylim(*ys)
    return axes


def _cell(axes: Any, x: float, y: float, chunk: Chunk, ranks: int, size: float) -> None:
    """A chunk as slices in the colours of the ranks that its numbers came from."""
    from matplotlib.patches import Rectangle

    left, low, wide, high = x + 0.05, y + 0.07, 0.9, 0.86
    axes.add_patch(Rectangle((left, low), wide, high, fc=PAPER, ec=LINE, lw=0.8))
    # The highest rank on the left: so each digit of 1101 stands on the colour of its own rank.
    origins = sorted(chunk.origins, reverse=True) if chunk.numbers else []
    for place, rank in enumerate(origins):
        each = wide / len(origins)
        box = (left + place * each, low), each, high
        alpha = 0.12 if chunk.gone else 0.5
        axes.add_patch(Rectangle(*box, fc=rank_colour(rank), ec="none", alpha=alpha))
    if chunk.new:
        axes.add_patch(Rectangle((left, low), wide, high, fill=False, ec=INK, lw=1.8))
    text = _text(chunk.numbers)
    axes.text(
        x + 0.5,
        y + 0.5,
        text,
        color=SOFT if chunk.gone or not chunk.numbers else INK,
        fontsize=min(size, size * 6 / max(1, len(text))),
        fontweight="bold" if len(origins) == ranks else "normal",
        ha="center",
        va="center",
    )


def _text(numbers: Sequence[float]) -> str:
    """A chunk's numbers, in the room that there is for one."""
    if not numbers:
        return "empty"
    text = f"{numbers[0]:g}" if isinstance(numbers[0], float) else str(numbers[0])
    return text if len(set(numbers)) == 1 else f"{text}…"


# The moving picture: one large grid, a column a rank, and room for what is on its way

PITCH = 2.3  # cells from one rank's column to the next


def _frame(states: Sequence[State], moves: Sequence[Any], step: int, moving: bool) -> Picture:
    """The state after `step` steps; moving: the state before, and what this step sends."""
    state = states[step - 1] if moving else states[step]
    ranks = len(state)
    width = ranks * PITCH + 2.9
    inch = min(0.64, 8.2 / width)
    figure = new_figure(width * inch, (ranks + 2.3) * inch * 0.8)
    axes = _plain(figure, (-2.7, width - 2.7), (ranks + 0.15, -2.15))
    _circle(axes, ranks, inch)
    size = 17 * inch
    for rank, chunks in enumerate(state):
        for number, chunk in enumerate(chunks):
            still = Chunk(chunk.numbers, chunk.origins, chunk.new and not moving, chunk.gone)
            _cell(axes, rank * PITCH, number, still, ranks, size)
    for number in range(ranks):
        axes.text(
            -1.5, number + 0.5, f"chunk {number}", color=INK, fontsize=size, ha="right", va="center"
        )
    for move in moves[step - 1] if moving else []:
        chunk = state[move.sender][move.chunk]
        _flight(axes, move, Chunk(chunk.numbers, chunk.origins), ranks, size)
    return picture(figure, _told(states, moves, step, moving))


def _circle(axes: Any, ranks: int, inch: float) -> None:
    """The names of the ranks, and the ring that they form."""
    size = 17 * inch
    for rank in range(ranks):
        axes.text(
            rank * PITCH + 0.5,
            -0.45,
            f"rank {rank}",
            color=INK,
            fontsize=size,
            fontweight="bold",
            ha="center",
            va="center",
        )
        if rank:
            _arrow(axes, ((rank - 1) * PITCH + 1.2, -0.45), (rank * PITCH - 0.2, -0.45))
    if ranks > 1:
        first, last = 0.5, (ranks - 1) * PITCH + 0.5
        axes.plot([last, last, first], [-0.9, -1.6, -1.6], color=SOFT, lw=1.3)
        _arrow(axes, (first, -1.6), (first, -0.85))


def _arrow(axes: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    style = {"arrowstyle": "-|>", "color": SOFT, "lw": 1.3, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", end, start, arrowprops=style, zorder=0.5)  # under the chunks


def _flight(axes: Any, move: Move, chunk: Chunk, ranks: int, size: float) -> None:
    """A chunk between two columns; on the way from the last to the first, at both ends."""
    y = move.chunk + 0.5
    start, end = move.sender * PITCH + 0.98, move.receiver * PITCH + 0.02
    gap = PITCH - 1
    if move.receiver == move.sender + 1:
        places = [start + gap / 2 - 0.5]
        _arrow(axes, (start, y), (end, y))
    else:
        places = [start + gap / 2 - 0.5, end - gap / 2 - 0.5]
        _arrow(axes, (start, y), (start + gap + 0.05, y))
        _arrow(axes, (end - gap + 0.05, y), (end, y))
    for x in places:
        _cell(axes, x, move.chunk, chunk, ranks, size)


# The sentences


def _whole(states: Sequence[State]) -> str:
    ranks, steps = len(states[0]), len(states) - 1
    if not steps:
        return "1 rank: its own numbers are the sum, and it sends nothing."
    ends = complete(states[-1])
    own = all(numbers == [rank] for rank, numbers in ends.items())
    each = "rank r holds chunk r of the sum" if own else f"the finished chunks are {ends}"
    return (
        f"{ranks} ranks, {steps} step{'' if steps == 1 else 's'}: in each, every rank sends one "
        f"chunk to the next rank, which adds it to its own. In the end {each}."
    )


def _told(states: Sequence[State], moves: Sequence[Any], step: int, moving: bool) -> str:
    ranks, last = len(states[0]), len(states) - 1
    if moving:
        first = moves[step - 1][0]
        return (
            f"Step {step} of {last}, on the way: rank {first.sender} sends chunk {first.chunk} to "
            f"rank {first.receiver}, and so on around the ring."
        )
    if not step:
        return "Start: each rank holds its own numbers, cut into chunks."
    if step == last:
        return f"After step {step}: on each rank, one chunk holds the sum over all {ranks} ranks."
    return (
        f"After step {step}: what came has been added, so it holds the numbers of {step + 1} ranks."
    )
