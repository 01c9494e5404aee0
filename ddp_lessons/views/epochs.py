"""How much of a dataset a rank has met, epoch by epoch, and how much all ranks together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ddp_lessons.run import Run
from ddp_lessons.views.shards import Shards, recorded
from ddp_lessons.views.theme import INK, LINE, SERIES, Picture, new_figure, picture, plain_axes

MARKERS = ("o", "s", "^", "D", "v", "X")


def samples_met(runs: Mapping[str, Run]) -> Picture:
    """The share of all samples that rank 0 has met after each epoch, a line for each title, and the
    share that any rank has met, dashed.

    Every rank records `shard`, a list of samples, and `samples`, how many there are, once an epoch.
    Raises ValueError for records that do not fit.
    """
    epochs = {title: recorded(run) for title, run in runs.items()}
    alone = {title: shares(found, [0]) for title, found in epochs.items()}
    every = {title: shares(found) for title, found in epochs.items()}
    figure = new_figure(7.8, 3.4)
    axes = plain_axes(figure)
    axes.set_title(
        "Samples that rank 0 has met", color=INK, fontsize=11, fontweight="bold", loc="left"
    )
    named = []
    for title, line in _grouped(every).items():
        axes.plot(*_points(line), color=INK, lw=1.6, ls=(0, (4, 3)), clip_on=False)
        named.append((line, f"all ranks together{title}"))
    for index, (title, line) in enumerate(alone.items()):
        look = {
            "color": SERIES[index % len(SERIES)],
            "marker": MARKERS[index % 6],
            "ms": 6,
            "lw": 2,
        }
        axes.plot(*_points(line), **look, clip_on=False)
        named.append((line, title))
    _label(axes, named)
    last = max(len(line) for line in alone.values())
    axes.set_ylim(0, 1.06)
    axes.set_xlim(0.7, last + 0.3)
    axes.set_xticks(range(1, last + 1))
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.axhline(0, color=LINE, lw=1, zorder=0)
    axes.grid(axis="y", color=LINE, lw=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("epochs done", color=INK, fontsize=10)
    return picture(figure, _sentence(epochs, alone, every))


def shares(epochs: Sequence[Shards], ranks: Sequence[int] | None = None) -> list[float]:
    """After each epoch, the share of all samples that these ranks (None: all) have been given."""
    met: set[int] = set()
    found = []
    for shards in epochs:
        chosen = shards.ranks if ranks is None else [shards.ranks[rank] for rank in ranks]
        met.update(*chosen)
        found.append(len(met) / shards.samples if shards.samples else 0.0)
    return found


def _grouped(every: Mapping[str, list[float]]) -> dict[str, list[float]]:
    """One line where all are equal, else one for each title."""
    lines = list(every.values())
    if all(line == lines[0] for line in lines):
        return {"": lines[0]}
    return {f", {title}": line for title, line in every.items()}


def _points(line: Sequence[float]) -> tuple[range, Sequence[float]]:
    return range(1, len(line) + 1), line


def _label(axes: Any, named: Sequence[tuple[Sequence[float], str]]) -> None:
    """Name each line at its end; names that would overlap are pushed apart."""
    lowest = -1.0
    for line, title in sorted(named, key=lambda pair: pair[0][-1]):
        level = max(line[-1], lowest)
        lowest = level + 0.09
        axes.annotate(
            f"{title}: {line[-1]:.0%}",
            (len(line), line[-1]),
            (1.02, level / 1.06),
            textcoords="axes fraction",
            va="center",
            color=INK,
            fontsize=11,
            fontweight="bold",
            annotation_clip=False,
        )


def _sentence(
    epochs: Mapping[str, Sequence[Shards]],
    alone: Mapping[str, list[float]],
    every: Mapping[str, list[float]],
) -> str:
    samples = next(iter(epochs.values()))[0].samples
    last = max(len(line) for line in alone.values())
    told = "; ".join(f"{title} {line[-1]:.0%}" for title, line in alone.items())
    groups = _grouped(every)
    both = "; ".join(
        f"{title.removeprefix(', ')} {_from_to(line)}".strip() for title, line in groups.items()
    )
    return (
        f"Of {samples:,} samples, rank 0 has met, after {last} epochs: {told}. "
        f"All ranks together: {both}."
    )


def _from_to(line: Sequence[float]) -> str:
    if line[0] == line[-1]:
        return f"{line[0]:.0%} from the first epoch on"
    return f"{line[0]:.0%} after the first epoch, {line[-1]:.0%} after the last"
