"""The ledger as lanes: one a rank, what it called when, and where it waited."""

from __future__ import annotations

from collections.abc import Sequence

from ddp_lessons.run import Run
from ddp_lessons.stall import Standing, sentence, standings
from ddp_lessons.text import short
from ddp_lessons.views.call_axis import LINKED, MARKS, cut, time_axis
from ddp_lessons.views.call_labels import LETTERS, place_labels
from ddp_lessons.views.call_layout import (
    LABELLED,
    PIECES,
    Bar,
    Lane,
    Layout,
    layout,
    spans,
)
from ddp_lessons.views.call_words import calls_told
from ddp_lessons.views.theme import (
    INK,
    LINE,
    PAPER,
    SOFT,
    WIDE,
    Picture,
    new_figure,
    picture,
    plain_axes,
    rank_colour,
)

LEAST = 0.035  # inches that the shortest bar takes
ROW = 1.15  # bars: the distance of two rows of bars


def calls(run: Run) -> Picture:
    """Who called what when, from `run.calls`: a lane a rank, a bar a call, from the call to its
    return. Hatched is the time in which some rank that the call meets had not called yet. A line
    links the calls that met. What never returned stays open to the right. A cross is where a script
    failed; one that failed first has it no later than the first rank that lost it.

    Raises ValueError if no rank made a call. Calls that DDP makes inside torch are not shown.
    """
    made = layout(run)
    per_inch = made.width / (WIDE - 0.9)
    if len(run) <= LABELLED:
        for lane in made.lanes:
            place_labels(lane, made.width, made.width / LETTERS)
    tops, tall = heights(made.lanes)
    figure = new_figure(WIDE, tall + 0.75)
    axes = plain_axes(figure)
    shown = range(0, len(run), 1 if len(run) <= 32 else 8)
    axes.set_yticks([tops[rank] for rank in shown], [f"rank {rank}" for rank in shown])
    for label in axes.get_yticklabels():
        label.set_fontweight("bold")
    for lane, y in zip(made.lanes, tops, strict=True):
        _lane(axes, lane, y, made, per_inch)
    if len(made.met) <= LINKED:
        _links(axes, made, tops, per_inch)
    if any(lane.open for lane in made.lanes) and len(run) <= LABELLED:
        _elsewhere(axes, made, tops, standings(run))
    time_axis(axes, run, made)
    axes.set_xlim(-0.012 * made.width, made.width * 1.012)
    axes.set_ylim(tall, 0)
    return picture(figure, calls_told(run))


def thickness(ranks: int) -> float:
    """Inches that a bar is high."""
    return 0.2 if ranks <= LABELLED else 0.13 if ranks <= 32 else 0.07


def heights(lanes: Sequence[Lane]) -> tuple[list[float], float]:
    """The middle of each lane's first row of bars, in inches from the top, and the whole height."""
    tops, y, bar = [], 0.05, thickness(len(lanes))
    for lane in lanes:
        y += 0.2 * lane.levels + (0.06 if lane.levels else 0.03) + bar / 2
        tops.append(y)
        y += bar * ROW * (lane.rows - 0.5) + (0.14 if len(lanes) <= LABELLED else 0.04)
    return tops, y


def _lane(axes: object, lane: Lane, y: float, made: Layout, per_inch: float) -> None:
    high, colour = thickness(len(made.lanes)), rank_colour(lane.rank.rank)
    end = lane.ended if lane.end else made.width
    axes.plot([0, end], [y, y], color=LINE, lw=1, zorder=0.5)
    flights = [one for one in lane.flights if one[1] - one[0] > LEAST * per_inch]
    if flights:
        starts, ends, rows = zip(*flights, strict=True)
        levels = [y + row * high * ROW for row in rows]
        axes.hlines(levels, starts, ends, color=colour, lw=1.5, ls=(0, (2, 1)), zorder=2)
    for row in range(lane.rows):
        for part in (False, True):
            bars = [one for one in lane.bars if (one.row, one.part) == (row, part)]
            _bars(
                axes,
                bars,
                colour,
                y + row * high * ROW,
                high * (0.6 if part else 1),
                made,
                per_inch,
            )
    for one in lane.labels:
        top, bar = y - high / 2, y + one.row * high * ROW
        at = top - 0.03 - 0.2 * one.level
        if one.level or one.row:
            axes.plot([one.x] * 2, [at, bar], color=SOFT, lw=0.7, zorder=2.5)
        if one.left < one.x:
            _text(axes, made.width, at, one.text, bold=one.bold, va="bottom", ha="right")
        else:
            _text(axes, one.x, at, one.text, bold=one.bold, va="bottom")
    if lane.end:
        mark, face, size = MARKS[lane.end.kind][:3]
        look = {"mfc": face, "mec": INK if face == PAPER else PAPER, "ms": size, "mew": 1.2}
        axes.plot([lane.ended], [y], mark, zorder=7, clip_on=False, **look)
        if len(made.lanes) <= LABELLED:
            bold = lane.end.kind != "lost"
            _text(axes, lane.ended + 0.09 * per_inch, y, lane.end.words, bold=bold, va="center")


def _bars(
    axes: object,
    bars: Sequence[Bar],
    colour: str,
    y: float,
    high: float,
    made: Layout,
    per_inch: float,
) -> None:
    merge = sum(len(lane.bars) for lane in made.lanes) > PIECES
    waiting, working = spans(bars, LEAST * per_inch, made.width, merge)
    edge = 0.0 if merge else 0.6
    place = (y - high / 2, high)
    axes.broken_barh(working, place, facecolor=colour, edgecolor=PAPER, lw=edge, zorder=3)
    look = {"facecolor": PAPER, "edgecolor": colour, "hatch": "/////", "lw": 1.0}
    axes.broken_barh(waiting, place, zorder=3.1, **look)
    if any(one.open for one in bars):
        axes.plot([made.width], [y], ">", color=colour, ms=9, zorder=5, clip_on=False)
        if len(made.lanes) <= LABELLED:
            _text(axes, cut(made), y, "//", bold=True, va="center_baseline", ha="center")


def _text(axes: object, x: float, y: float, text: str, bold: bool = False, **more: str) -> None:
    # The paper under it keeps the links from running through the letters.
    under = {"facecolor": PAPER, "edgecolor": "none", "pad": 0.6}
    weight = "bold" if bold else "normal"
    axes.text(x, y, text, color=INK, fontsize=10, fontweight=weight, zorder=6, bbox=under, **more)


def _links(axes: object, made: Layout, tops: Sequence[float], per_inch: float) -> None:
    """A line between the calls that met, with a dot at each of them, when the last was called."""
    step = thickness(len(made.lanes)) * ROW
    rows = {(bar.call.rank, bar.call.seq): bar.row for lane in made.lanes for bar in lane.bars}
    met = sorted((m for m in made.met if len(m.calls) > 1), key=lambda meeting: meeting.last)
    times = [float("-inf"), *(meeting.last for meeting in met), float("inf")]
    for meeting, before, after in zip(met, times, times[2:], strict=False):
        # Dots that would lie on each other are small.
        dense = min(meeting.last - before, after - meeting.last) < 0.07 * per_inch
        x = meeting.last - made.zero
        ys = [tops[c.rank] + rows[c.rank, c.seq] * step for c in meeting.calls]
        axes.plot([x, x], [min(ys), max(ys)], color=SOFT, lw=0.6 if dense else 1, zorder=1)
        size = {"ms": 3, "mew": 0.4} if dense else {"ms": 4.5, "mew": 0.7}
        axes.plot([x] * len(ys), ys, "o", color=INK, mec=PAPER, zorder=4, **size)


def _elsewhere(
    axes: object, made: Layout, tops: Sequence[float], found: Sequence[Standing]
) -> None:
    """Where the ranks stood that were in none of these calls when the run was stopped."""
    for lane, y, one in zip(made.lanes, tops, found, strict=True):
        if not lane.open and not lane.end:
            words = sentence([one]).partition(f"rank {one.rank} ")[2]
            if one.kind == "at work" and one.source:
                words += f": {short(one.source, 40)}"
            _text(axes, made.width, y, words, va="center", ha="right")
