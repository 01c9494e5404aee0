"""Grids of numbers before and after each call, every number in the colours of its origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ddp_lessons.run import Run, short
from ddp_lessons.views.theme import (
    EDGE,
    INK,
    PAPER,
    SOFT,
    Picture,
    new_figure,
    picture,
    plain_axes,
    slices,
)

Held = dict[tuple[int, str], Any]  # (rank, variable) -> its value

# In cells: between the parts of a list, between variables, and above the first band.
GAP, PAD, HEAD = 0.3, 0.55, 0.6
KEY = 5.2  # inches that the line under the bands needs


@dataclass(frozen=True)
class Band:
    """One call: what every rank held before it and after it. A rank that never came back from the
    call has nothing after it."""

    call: str
    ranks: int
    before: Held
    after: Held

    @property
    def lost(self) -> list[int]:
        """The ranks that made the call and never came back from it."""
        return sorted({rank for rank, _ in self.before} - {rank for rank, _ in self.after})

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(name for _, name in [*self.before, *self.after]))


def before_after(*runs: Run) -> Picture:
    """What each rank held before and after each call, one band a call.

    From pairs of records named "before X" and "after X", whose values are whole numbers or lists
    of them. The decimal places of a number say where it comes from: ones from rank 0, tens from
    rank 1, and so on, so each number is drawn as slices in the colours of those ranks. A number
    that a call has changed has a thick edge. Raises ValueError if no run has such records or if
    they hold something else than whole numbers from 0 up.
    """
    bands = [band for run in runs for band in bands_of(run)]
    if not bands:
        raise ValueError('no records named "before ..." and "after ..."')
    widths = [_widths(band) for band in bands]
    side = max(sum(wide.values()) + PAD * (len(wide) - 1) for wide in widths)
    rows = sum(band.ranks + 1.35 for band in bands)
    width = 2 * side + 3.5
    inch = min(0.56, 8.4 / width)
    width = max(width, KEY / inch)
    figure = new_figure(width * inch, (rows + HEAD) * inch * 0.9 + 0.3)
    axes = plain_axes(figure)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlim(-1.6, width - 1.6)
    axes.set_ylim(rows + HEAD - 0.2, -0.1)
    for x, word in ((0.05, "before"), (side + 1.75, "after")):
        axes.text(x, 0.3, word, color=SOFT, fontsize=10.5, va="center")
    axes.set_xlabel(
        "colour: the rank that a number came from     thick edge: changed",
        color=INK,
        fontsize=10,
        loc="left",
    )
    top = HEAD
    for band, wide in zip(bands, widths, strict=True):
        _draw(axes, band, wide, top, side + 1.7)
        top += band.ranks + 1.35
    return picture(figure, _sentence(bands))


def bands_of(run: Run) -> list[Band]:
    """The calls of a run, in an order that every rank's own order agrees with. Of a call that was
    recorded more than once, the last time."""
    calls: dict[str, tuple[Held, Held]] = {}
    order: list[str] = []
    for rank in run:
        place = 0
        for record in rank.records:
            when, _, call = record.name.partition(" ")
            if when not in ("before", "after") or not call:
                continue
            if call not in calls:
                calls[call] = ({}, {})
                order.insert(place, call)
            place = order.index(call) + 1
            held = calls[call][when == "after"]
            held |= {(rank.rank, name): value for name, value in record.values.items()}
    return [Band(call, run.world_size, *calls[call]) for call in order]


def origins(number: int) -> dict[int, int]:
    """What each rank gave to a number, by its decimal places: 203 is 3 from rank 0, 200 from 2.

    Raises ValueError for what is no whole number from 0 up.
    """
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise ValueError(f"origins are read from whole numbers from 0 up, not from {number!r}")
    digits = reversed(str(number))
    return {rank: int(digit) * 10**rank for rank, digit in enumerate(digits) if digit != "0"}


def parts(value: Any) -> list[list[int]]:
    """A value as a list of lists: one list a tensor. [] for None."""
    if value is None:
        return []
    if not isinstance(value, list):
        return [[value]]
    return value if value and isinstance(value[0], list) else [value]


def _wide(value: Any) -> float:
    lists = parts(value)
    return sum(map(len, lists)) + GAP * max(0, len(lists) - 1)


def _widths(band: Band) -> dict[str, float]:
    """The widest value of each variable, in cells; room for the word None where there is none."""
    every = [*band.before.items(), *band.after.items()]
    return {
        name: max(1.2, *(_wide(value) for (_, other), value in every if other == name))
        for name in band.names
    }


def _draw(axes: Any, band: Band, wide: dict[str, float], top: float, right: float) -> None:
    axes.text(-1.55, top + 0.3, band.call, color=INK, fontsize=11, fontweight="bold", va="center")
    middle = top + 0.95 + band.ranks / 2
    axes.annotate(
        "",
        (right - 0.35, middle),
        (right - 1.25, middle),
        arrowprops={"arrowstyle": "-|>", "color": SOFT, "lw": 1.8, "mutation_scale": 16},
    )
    for left, held in ((0.0, band.before), (right, band.after)):
        x = left
        for name in band.names:
            if any(other == name for _, other in held):
                axes.text(x, top + 0.8, name, color=SOFT, fontsize=10, va="center")
            for rank in range(band.ranks):
                y = top + 0.95 + rank
                if (rank, name) in held:
                    was = band.before.get((rank, name)) if held is band.after else None
                    _value(axes, x, y, held[rank, name], was)
            x += wide[name] + PAD
    for rank in band.lost:
        y = top + 1.45 + rank
        axes.text(right, y, "never returned", color=SOFT, fontsize=10, style="italic", va="center")
    for rank in range(band.ranks):
        y = top + 1.45 + rank
        if not any(one == rank for one, _ in band.before):
            axes.text(0.05, y, "no call", color=SOFT, fontsize=10, style="italic", va="center")
        axes.text(-1.5, y, f"rank {rank}", color=INK, fontsize=10, va="center")


def _value(axes: Any, x: float, y: float, value: Any, was: Any) -> None:
    if value is None:
        axes.text(x, y + 0.5, "None", color=SOFT, fontsize=10, style="italic", va="center")
        return
    old = [number for part in parts(was) for number in part]
    new = [number for part in parts(value) for number in part]
    place = 0
    for part in parts(value):
        for number in part:
            changed = len(old) == len(new) and old[place] != number
            _cell(axes, x, y, number, changed)
            place += 1
            x += 1
        x += GAP


def _cell(axes: Any, x: float, y: float, number: int, changed: bool) -> None:
    from matplotlib.patches import Rectangle

    left, low, wide, high = x + 0.05, y + 0.08, 0.9, 0.84
    given = origins(number)
    axes.add_patch(Rectangle((left, low), wide, high, fc=PAPER, ec=EDGE, lw=1))
    # As the digits stand, so that each stands on its own colour: ones on the right.
    slices(axes, (left, low, wide, high), list(reversed(given)))
    if changed:
        axes.add_patch(Rectangle((left, low), wide, high, fill=False, ec=INK, lw=1.8))
    axes.text(
        x + 0.5,
        y + 0.5,
        str(number),
        color=INK if given else SOFT,
        fontsize=10.5,
        fontweight="bold" if changed else "normal",
        ha="center",
        va="center",
    )


def _sentence(bands: list[Band]) -> str:
    return " ".join(_told(band) for band in bands)


def _told(band: Band) -> str:
    """What the call changed, in words."""
    changed: dict[tuple[str, str], list[int]] = {}
    for (rank, name), value in band.after.items():
        if (rank, name) in band.before and band.before[rank, name] != value:
            changed.setdefault((name, short(value)), []).append(rank)
    told = [f"{name} becomes {value} on {_ranks(r, band)}" for (name, value), r in changed.items()]
    told += [f"never returns on {_ranks(band.lost, band)}"] if band.lost else []
    if not told:
        return f"{band.call}: no number changes."
    return f"{band.call}: " + ", ".join(told) + "."


def _ranks(ranks: list[int], band: Band) -> str:
    if len(ranks) == band.ranks > 1:
        return "every rank"
    *first, last = map(str, ranks)
    return f"ranks {', '.join(first)} and {last}" if first else f"rank {last}"
