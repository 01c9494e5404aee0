"""The shard map: a row a rank, a cell for each sample that it gets, one grid an epoch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ddp_lessons.run import Run
from ddp_lessons.views.shards import Shards, recorded, sampled
from ddp_lessons.views.sliders import Sliders
from ddp_lessons.views.theme import (
    INK,
    LEAST,
    PAPER,
    SOFT,
    WIDE,
    Picture,
    new_figure,
    picture,
    plain_axes,
    rank_colour,
)
from ddp_lessons.views.theme import cell as shade

MOST_SAMPLES, MOST_RANKS = 40, 8
LIMITS = {"length": (1, MOST_SAMPLES), "world_size": (1, MOST_RANKS), "epoch": (0, 9)}
WIDTH = WIDE  # inches
LABEL, GAP = 0.7, 0.5  # inches: for the names of ranks, between two grids
HEAD, EPOCH = 0.36, 0.22  # inches: for a title, for the names of epochs
FRAME = (WIDTH, 3.9)  # of the picture under the sliders, so that nothing jumps
CELL, TALL = 0.62, 3.6  # inches, at most: a cell, and the rows of all ranks


def shard_map(runs: Mapping[str, Run]) -> Picture:
    """Which rank gets which sample in which epoch, by title, from what the ranks recorded.

    Every rank records `shard`, a list of samples, and `samples`, how many there are, once an epoch.
    Hatched: a sample that was given out before in the same epoch, place by place and rank by rank.
    Raises ValueError for records that do not fit, over 40 samples or over 8 ranks.
    """
    bands = {title: recorded(run) for title, run in runs.items()}
    for epochs in bands.values():
        if epochs[0].samples > MOST_SAMPLES or len(epochs[0].ranks) > MOST_RANKS:
            raise ValueError(f"at most {MOST_SAMPLES} samples and {MOST_RANKS} ranks can be drawn")
    return picture(_drawn(bands), _told_runs(bands))


def sampler(
    length: int = 10,
    world_size: int = 4,
    *,
    shuffle: bool = False,
    drop_last: bool = False,
    epoch: int = 0,
) -> Sliders:
    """The shard map of torch's DistributedSampler, with a slider or a box for each argument.

    Raises ValueError outside 1 to 40 samples, 1 to 8 ranks and epochs 0 to 9.
    """
    settings = {
        "length": length,
        "world_size": world_size,
        "epoch": epoch,
        "shuffle": shuffle,
        "drop_last": drop_last,
    }
    for name, (low, high) in LIMITS.items():
        if not low <= settings[name] <= high:
            raise ValueError(f"{name} is a whole number from {low} to {high}, not {settings[name]}")
    return Sliders(_sampler(**settings), partial(_sampler, framed=True), settings, LIMITS)


def _sampler(
    length: int, world_size: int, epoch: int, shuffle: bool, drop_last: bool, framed: bool = False
) -> Picture:
    shards = sampled(length, world_size, shuffle=shuffle, drop_last=drop_last, epoch=epoch)
    title = f"shuffle={shuffle}, drop_last={drop_last}, epoch {epoch}"
    sentence = f"{title}: {_told(shards)}."
    return picture(_drawn({title: [shards]}, FRAME if framed else None), sentence)


# The drawing


def _drawn(bands: Mapping[str, Sequence[Shards]], frame: tuple[float, float] | None = None) -> Any:
    """One band of grids for each title. Everything is in inches, from the upper left corner."""
    cell = min(_cell(epochs, frame) for epochs in bands.values())
    cell = min(cell, max(0.36, TALL / sum(map(_rows, bands.values()))))
    heights = [_head(epochs) + _rows(epochs) * cell + 0.25 for epochs in bands.values()]
    width, height = frame or (WIDTH, sum(heights) + 0.25)
    figure = new_figure(width, height)
    axes = plain_axes(figure)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlim(0, width)
    axes.set_ylim(height - 0.3, 0)
    top = 0.0
    for (title, epochs), high in zip(bands.items(), heights, strict=True):
        axes.text(0, top + 0.16, title, color=INK, fontsize=11, fontweight="bold", va="center")
        _band(axes, epochs, top, cell)
        top += high
    axes.set_xlabel(_key(bands, bool(frame)), color=INK, fontsize=10, loc="left")
    return figure


def _key(bands: Mapping[str, Sequence[Shards]], whole: bool) -> str:
    every = [shards for epochs in bands.values() for shards in epochs]
    parts = ["number: the sample"]
    if whole or any(cell.again for shards in every for cell in shards.cells):
        parts.append("hatched: given out before (columns left to right)")
    if whole or any(shards.left_out for shards in every):
        parts.append("dashed: left out")
    return "     ".join(parts)


def _columns(shards: Shards) -> int:
    return max(1, len(shards.left_out), *map(len, shards.ranks))


def _rows(epochs: Sequence[Shards]) -> int:
    return len(epochs[0].ranks) + any(shards.left_out for shards in epochs)


def _head(epochs: Sequence[Shards]) -> float:
    return HEAD + EPOCH * (len(epochs) > 1)


def _cell(epochs: Sequence[Shards], frame: tuple[float, float] | None) -> float:
    """The side of a cell that lets a band fit."""
    room = WIDTH - LABEL - GAP * (len(epochs) - 1) - 0.1
    side = min(CELL, room / sum(map(_columns, epochs)))
    return min(side, (frame[1] - HEAD - 0.5) / _rows(epochs)) if frame else side


def _band(axes: Any, epochs: Sequence[Shards], top: float, cell: float) -> None:
    first = top + _head(epochs)
    left = LABEL
    size = max(LEAST, min(13.0, cell * 72 * 0.36))
    for number, shards in enumerate(epochs):
        if len(epochs) > 1:
            axes.text(left, first - 0.12, f"epoch {number}", color=SOFT, fontsize=10, va="center")
        for rank, shard in enumerate(shards.ranks):
            y = first + (rank + 0.5) * cell
            if not number:
                axes.text(0, y, f"rank {rank}", color=INK, fontsize=10, va="center")
            if not shard:
                axes.text(left, y, "nothing", color=SOFT, fontsize=10, style="italic", va="center")
        for one in shards.cells:
            at = left + one.place * cell, first + one.rank * cell
            _box(axes, at, cell, size, one.sample, rank_colour(one.rank), one.again)
        for place, sample in enumerate(shards.left_out):
            at = left + place * cell, first + len(shards.ranks) * cell
            _box(axes, at, cell, size, sample)
        if shards.left_out and not number:
            y = first + (len(shards.ranks) + 0.5) * cell
            axes.text(0, y, "nobody", color=SOFT, fontsize=10, va="center")
        left += _columns(shards) * cell + GAP


def _box(
    axes: Any,
    at: tuple[float, float],
    cell: float,
    size: float,
    sample: int,
    colour: str = "",
    again: bool = False,
) -> None:
    """A sample in its rank's colour, hatched where it comes again; without a colour, nobody's."""
    from matplotlib.patches import Rectangle

    x, y = at
    tight = size > 0.6 * 72 * cell  # two digits are as wide as the cell
    gap = 0 if tight else 0.04 * cell
    box = (x + gap, y + 0.06 * cell), cell - 2 * gap, 0.88 * cell
    paper = None
    if not colour:
        axes.add_patch(Rectangle(*box, fill=False, ec=SOFT, lw=1, ls=(0, (3, 2))))
    elif again:
        axes.add_patch(Rectangle(*box, fc=PAPER, ec=colour, lw=1.2, hatch="/////"))
        paper = {"fc": PAPER, "ec": "none", "pad": 0.12 * size}
    else:
        shade(axes, (*box[0], *box[1:]), colour, edge=0.6 if tight else 1.4)
    axes.text(
        x + 0.5 * cell,
        y + 0.5 * cell,
        str(sample),
        color=INK if colour else SOFT,
        fontsize=size,
        ha="center",
        va="center",
        bbox=paper,
    )


# The sentences


def _told(shards: Shards) -> str:
    """How much each rank gets, what is given out again, what is left out."""
    sizes = sorted({len(shard) for shard in shards.ranks})
    again = [cell.sample for cell in shards.cells if cell.again]
    ranks = len(shards.ranks)
    who = f"{ranks} ranks get" if ranks > 1 else "1 rank gets"
    return (
        f"{who} {' or '.join(map(str, sizes))} of {shards.samples} samples{' each' * (ranks > 1)}; "
        f"{_named('given out again', again)}; {_named('left out', shards.left_out)}"
    )


def _named(what: str, samples: Sequence[int]) -> str:
    if not samples:
        return f"none is {what}"
    verb = "is" if len(samples) == 1 else "are"
    names = f" ({_counted(samples)})" if len(samples) <= MOST_RANKS else ""
    return f"{len(samples)} {verb} {what}{names}"


def _counted(samples: Sequence[int]) -> str:
    """Each sample once, in order, and how often it stands there if more than once."""
    times = Counter(sorted(samples))
    told = {1: "", 2: " twice"}
    return ", ".join(f"{s}{told.get(n, f' {n} times')}" for s, n in times.items())


def _told_runs(bands: Mapping[str, Sequence[Shards]]) -> str:
    """The orders first, then the sizes: once, if all bands have the same."""
    orders = [f"{title}: {_order(epochs)}." for title, epochs in bands.items() if len(epochs) > 1]
    sizes = {title: _sizes(epochs) for title, epochs in bands.items()}
    if orders and len(bands) > 1 and len(set(sizes.values())) == 1:
        return " ".join([*orders, f"In each epoch {_sizes(next(iter(bands.values())))}."])
    each = [_told(shards) for epochs in bands.values() for shards in epochs]
    if len(bands) == 1 and len(set(each)) == len(each) == 2:
        return " ".join(
            [*orders, *(f"Epoch {number}: {told}." for number, told in enumerate(each))]
        )
    return " ".join([*orders, *(f"{title}: {told}." for title, told in sizes.items())])


def _order(epochs: Sequence[Shards]) -> str:
    count = "both epochs" if len(epochs) == 2 else f"all {len(epochs)} epochs"
    orders = {tuple(map(tuple, shards.ranks)) for shards in epochs}
    if len(orders) == 1:
        return f"{count} have the same order"
    if len(orders) == len(epochs):
        return "each epoch has another order"
    return f"{len(epochs)} epochs have {len(orders)} different orders"


def _sizes(epochs: Sequence[Shards]) -> str:
    told = list(dict.fromkeys(map(_told, epochs)))
    return "; or ".join(told) if len(told) <= 2 else "shards of several kinds"
