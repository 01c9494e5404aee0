"""Which bars of a lane have labels, and where these stand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ddp_lessons.views.call_layout import Lane, Spans

LEVELS = 3  # labels of one rank above each other
LETTERS = 112  # of a label, from one side of the picture to the other
BOLD = 1.12  # how much wider a bold letter is
MANY = 12  # calls of a rank from which on each label is given once


@dataclass(frozen=True)
class Label:
    """A text that begins at `left`, on a level above the lane, with a line down to `x`."""

    text: str
    x: float
    left: float
    level: int
    row: int = 0
    bold: bool = False


def place_labels(lane: Lane, width: float, per_letter: float) -> None:
    """Give the bars labels where there is room, first those that went wrong, then the longest. A
    label stands above its bar, or higher with a line down to it."""
    order = sorted(lane.bars, key=lambda bar: (not bar.first, bar.start - bar.end))
    wanted = [(bar.label, bar.start, bar.row, bar.first) for bar in order]
    if len(lane.rank.calls) > MANY:
        wanted = list({text: (text, *rest) for text, *rest in reversed(wanted)}.values())[::-1]
    taken: list[Spans] = [[] for _ in range(LEVELS)]
    hair = per_letter / 3
    for text, x, row, bold in wanted[: 40 * LEVELS]:
        size = (len(text) * (BOLD if bold else 1) + 1) * per_letter
        left = x if x + size <= width else max(0.0, width - size)
        foot = (x - hair, x + hair)
        for level in range(LEVELS):
            clear = all(is_free(taken[below], *foot) for below in range(level))
            if clear and is_free(taken[level], left, left + size):
                taken[level].append((left, left + size))
                for below in range(level):
                    taken[below].append(foot)
                lane.labels.append(Label(text, x, left, level, row, bold))
                break


def is_free(taken: Spans, left: float, right: float) -> bool:
    return all(right <= start or end <= left for start, end in taken)
