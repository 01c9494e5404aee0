"""The link grid: a row a step, a column a link, a coloured cell for each message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ddp_lessons.run import Run
from ddp_lessons.views.messages import Message, messages
from ddp_lessons.views.theme import (
    INK,
    LINE,
    SOFT,
    WIDE,
    Picture,
    cell,
    new_figure,
    picture,
    plain_axes,
    rank_colour,
)

GAP = 2.4  # cells to the left of each run, for the names of its steps
HEAD = 1.7  # cells above the steps


def links(runs: Mapping[str, Run], half: str = "") -> Picture:
    """The bytes that each link carried in each step: runs by title, side by side on one scale.

    From the sends and receives of each run. `half` is the title of a run that does only the first
    half of its work: under its steps as many are outlined. Raises ValueError if a run has none.
    """
    found = {title: messages(run) for title, run in runs.items()}
    for title, those in found.items():
        if not those:
            raise ValueError(f"no rank of {title!r} sent anything to another")
    wide = {title: _columns(those) for title, those in found.items()}
    rows = max(_steps(those) * (2 if title == half else 1) for title, those in found.items())
    width = sum(map(len, wide.values())) + GAP * len(runs)
    inch = min(0.56, WIDE / width)
    high = min(0.42, inch)
    figure = new_figure(width * inch, (rows + HEAD) * high + 0.3)
    axes = plain_axes(figure)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlim(-GAP, width - GAP + 0.05)
    axes.set_ylim(rows + 0.1, -HEAD)
    most = max(message.bytes for those in found.values() for message in those)
    left = 0.0
    for title, those in found.items():
        axes.text(left, -1.3, title, color=INK, fontsize=11.5, fontweight="bold", va="center")
        _grid(axes, left, wide[title], those, most, inch)
        if title == half:
            _outline(axes, left, len(wide[title]), _steps(those))
        left += len(wide[title]) + GAP
    key = "number: bytes     colour: the rank that sends"
    if any("k" in amount(message.bytes, inch) for those in found.values() for message in those):
        key = f"{key}     k: thousand"
    axes.set_xlabel(key, color=INK, fontsize=10, loc="left")
    return picture(figure, _sentence(found, half))


def _columns(those: Sequence[Message]) -> list[tuple[int, int]]:
    """The links in use, in the order in which they come into use."""
    return list(dict.fromkeys(message.link for message in those))


def _steps(those: Sequence[Message]) -> int:
    return 1 + max(message.step for message in those)


def _grid(
    axes: Any,
    left: float,
    columns: Sequence[tuple[int, int]],
    those: Sequence[Message],
    most: int,
    inch: float,
) -> None:
    from matplotlib.patches import Rectangle

    for column, (sender, receiver) in enumerate(columns):
        axes.text(
            left + column + 0.5,
            -0.4,
            f"{sender}\N{RIGHTWARDS ARROW}{receiver}",
            color=INK,
            fontsize=10,
            ha="center",
            va="center",
        )
    for step in range(_steps(those)):
        axes.text(
            left - 0.2,
            step + 0.5,
            f"step {step + 1}",
            color=INK,
            fontsize=10,
            ha="right",
            va="center",
        )
        for column in range(len(columns)):
            box = (left + column + 0.04, step + 0.04), 0.92, 0.92
            axes.add_patch(Rectangle(*box, fill=False, ec=LINE, lw=0.7))
    for message in those:
        x = left + columns.index(message.link)
        colour = rank_colour(message.sender)
        strength = 0.12 + 0.4 * message.bytes / most if message.bytes else 0
        cell(axes, (x + 0.04, message.step + 0.04, 0.92, 0.92), colour, strength)
        axes.text(
            x + 0.5,
            message.step + 0.5,
            amount(message.bytes, inch),
            color=INK,
            fontsize=10,
            ha="center",
            va="center",
        )


def amount(size: int, inch: float) -> str:
    """Bytes, in the room of a cell of that many inches."""
    text = f"{size:,}"
    if len(text) * 6.4 <= 72 * inch or size < 1000:
        return text
    return f"{size / 1000:.{int(size < 9950)}f}k"


def _outline(axes: Any, left: float, columns: int, steps: int) -> None:
    """Where the second half of the work would stand."""
    from matplotlib.patches import Rectangle

    box = (left + 0.04, steps + 0.08), columns - 0.08, steps - 0.12
    axes.add_patch(Rectangle(*box, fill=False, ec=SOFT, lw=1, ls=(0, (4, 3))))
    axes.text(
        left + columns / 2,
        steps * 1.5,
        "second half:\nas much again",
        color=SOFT,
        fontsize=10,
        ha="center",
        va="center",
    )


def _sentence(found: Mapping[str, Sequence[Message]], half: str) -> str:
    return " ".join(
        f"{_told(f'{title}, first half', those)} {_doubled(those)}"
        if title == half
        else _told(title, those)
        for title, those in found.items()
    )


def _doubled(those: Sequence[Message]) -> str:
    """What both halves come to, if the second is as much as the first."""
    by_rank = {rank: sum(m.bytes for m in those if m.sender == rank) for rank in senders(those)}
    total, most = 2 * sum(by_rank.values()), 2 * max(by_rank.values(), default=0)
    return f"With a second half as large: {total:,} bytes, at most {most:,} of them from one rank."


def _told(title: str, those: Sequence[Message]) -> str:
    at_once = {sum(m.step == step for m in those) for step in range(_steps(those))}
    busy = " or ".join(map(str, sorted(at_once)))
    by_rank = {rank: sum(m.bytes for m in those if m.sender == rank) for rank in senders(those)}
    empty = sum(m.bytes == 0 for m in those)
    return (
        f"{title}: {len(those)} messages{f', {empty} of them empty,' if empty else ''} in "
        f"{_steps(those)} steps, {busy} at a time; {sum(by_rank.values()):,} bytes in all, at most "
        f"{max(by_rank.values()):,} from one rank."
    )


def senders(those: Sequence[Message]) -> list[int]:
    return sorted({message.sender for message in those})
