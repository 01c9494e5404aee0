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
    EDGE,
    INK,
    LEAST,
    PAPER,
    SOFT,
    WIDE,
    Picture,
    new_figure,
    picture,
    plain_axes,
    slices,
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
    return Player(_still(states, moves), frames)


# The still picture: one small grid a state


def _still(states: Sequence[State], moves: Sequence[Sequence[Move]]) -> Picture:
    ranks = len(states[0])
    # Room for the arrows from rank to rank, as long as there are few.
    pitch = 1.5 if ranks <= 4 else 1.0
    wide = (ranks - 1) * pitch + 1
    apart = pitch + 0.35
    beside = max(1, min(len(states), int((15 if pitch > 1 else 20) // (wide + apart))))
    rows = math.ceil(len(states) / beside)
    width, height = beside * (wide + apart) + 2.0, rows * (ranks + 2.5)
    inch = min(0.6, WIDE / width)
    figure = new_figure(max(width * inch, 6.4), height * inch * 0.68 + 0.3)
    axes = _plain(figure, (-2.0, max(width, 6.4 / inch) - 2.0), (height - 0.3, -0.1))
    for step, state in enumerate(states):
        left = step % beside * (wide + apart)
        top = step // beside * (ranks + 2.5)
        title = f"after step {step}" if step else "start"
        axes.text(left + 0.05, top + 0.4, title, color=INK, fontsize=11, fontweight="bold")
        for rank, chunks in enumerate(state):
            x = left + rank * pitch
            name = f"rank {rank}" if pitch > 1 else str(rank)
            look = {"color": INK, "fontsize": 10, "ha": "center", "va": "center"}
            axes.text(x + 0.5, top + 1.05, name, **look)
            for number, chunk in enumerate(chunks):
                _cell(axes, x, top + 1.45 + number, chunk, ranks, 10, inch)
        for move in moves[step - 1] if step and pitch > 1 else []:
            _sent(axes, move, left, top + 1.95 + move.chunk, pitch)
        if step % beside == 0:
            for number in range(ranks):
                look = {"color": INK, "fontsize": 10, "ha": "right", "va": "center"}
                axes.text(left - 0.72, top + 1.95 + number, f"chunk {number}", **look)
    key = _KEY if pitch == 1 or len(states) == 1 else f"arrow: sent in this step     {_KEY}"
    axes.set_xlabel(key, color=INK, fontsize=10, loc="left")
    return picture(figure, _whole(states))


def _sent(axes: Any, move: Move, left: float, y: float, pitch: float) -> None:
    """An arrow from the sender to the receiver; from the last to the first, its two ends."""
    start, end = left + move.sender * pitch + 1, left + move.receiver * pitch
    if move.receiver == move.sender + 1:
        _arrow(axes, (start, y), (end, y))
    else:
        _arrow(axes, (start, y), (start + pitch - 0.95, y))
        _arrow(axes, (end - pitch + 0.95, y), (end, y))


_KEY = "colour: whose numbers     thick edge: added in this step     pale: passed on"


def _plain(figure: Any, xs: tuple[float, float], ys: tuple[float, float]) -> Any:
    axes = plain_axes(figure)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlim(*xs)
    axes.set_ylim(*ys)
    return axes


def _cell(
    axes: Any, x: float, y: float, chunk: Chunk, ranks: int, size: float, inch: float
) -> None:
    """A chunk as slices in the colours of the ranks that its numbers came from. The number is left
    out where it has no room."""
    from matplotlib.patches import Rectangle

    left, low, wide, high = x + 0.03, y + 0.07, 0.94, 0.86
    axes.add_patch(Rectangle((left, low), wide, high, fc=PAPER, ec=EDGE, lw=0.8))
    # The highest rank on the left: so each digit of 1101 stands on the colour of its own rank.
    origins = sorted(chunk.origins, reverse=True) if chunk.numbers else []
    slices(axes, (left, low, wide, high), origins, 0.12 if chunk.gone else 0.45, not chunk.gone)
    if chunk.new:
        axes.add_patch(Rectangle((left, low), wide, high, fill=False, ec=INK, lw=2))
    text, whole = _text(chunk.numbers), len(origins) == ranks
    if len(text) * size * (0.7 if whole else 0.64) > 72 * inch:
        return
    axes.text(
        x + 0.5,
        y + 0.47,
        text,
        color=SOFT if chunk.gone or not chunk.numbers else INK,
        fontsize=size,
        fontweight="bold" if whole else "normal",
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
    width = ranks * PITCH + 3.4
    inch = min(0.66, WIDE / width)
    figure = new_figure(width * inch, (ranks + 2.3) * inch * 0.8)
    axes = _plain(figure, (-3.2, width - 3.2), (ranks + 0.15, -2.15))
    _circle(axes, ranks, inch)
    size = max(LEAST, 17 * inch)
    for rank, chunks in enumerate(state):
        for number, chunk in enumerate(chunks):
            still = Chunk(chunk.numbers, chunk.origins, chunk.new and not moving, chunk.gone)
            _cell(axes, rank * PITCH, number, still, ranks, size, inch)
    for number in range(ranks):
        axes.text(
            -1.5, number + 0.5, f"chunk {number}", color=INK, fontsize=size, ha="right", va="center"
        )
    for move in moves[step - 1] if moving else []:
        chunk = state[move.sender][move.chunk]
        _flight(axes, move, Chunk(chunk.numbers, chunk.origins), ranks, size, inch)
    return picture(figure, _told(states, moves, step, moving))


def _circle(axes: Any, ranks: int, inch: float) -> None:
    """The names of the ranks, and the ring that they form."""
    size = max(LEAST, 17 * inch)
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


def _flight(axes: Any, move: Move, chunk: Chunk, ranks: int, size: float, inch: float) -> None:
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
        _cell(axes, x, move.chunk, chunk, ranks, size, inch)


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
