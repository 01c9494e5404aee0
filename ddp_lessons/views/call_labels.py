"""Which bars of a lane have labels, and where these stand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ddp_lessons.views.call_layout import Lane, Spans

LEVELS = 3  # labels of one rank above each other
LETTERS = 98  # of a label, from one side of the picture to the other
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
    label stands above its bar, or higher with a line down to it; one that says the same as another
    of the lane only right above its bar."""
    order = sorted(lane.bars, key=lambda bar: (not bar.first, bar.start - bar.end))
    wanted = {bar.label: bar for bar in reversed(order)}
    once = [bar for bar in order if bar.first or wanted[bar.label] is bar]
    again = [bar for bar in order if bar not in once and not bar.row]
    if len(lane.rank.calls) > MANY:
        once, again = [bar for bar in order if wanted[bar.label] is bar], []
    taken: list[Spans] = [[] for _ in range(LEVELS)]
    hair = per_letter / 3
    placed = [*((bar, LEVELS) for bar in once), *((bar, 1) for bar in again)]
    for bar, levels in placed[: 40 * LEVELS]:
        text, x, row, bold = bar.label, bar.start, bar.row, bar.first
        size = (len(text) * (BOLD if bold else 1) + 1) * per_letter
        left = x if x + size <= width else max(0.0, width - size)
        foot = (x - hair, x + hair)
        for level in range(levels):
            clear = all(is_free(taken[below], *foot) for below in range(level))
            if clear and is_free(taken[level], left, left + size):
                taken[level].append((left, left + size))
                for below in range(level):
                    taken[below].append(foot)
                lane.labels.append(Label(text, x, left, level, row, bold))
                break


def is_free(taken: Spans, left: float, right: float) -> bool:
    return all(right <= start or end <= left for start, end in taken)
