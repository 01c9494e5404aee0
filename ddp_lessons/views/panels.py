"""Traps beside their mends: the parameter gap step by step, a panel a trap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ddp_lessons.run import Run
from ddp_lessons.views.gap import SAME, gaps, told_gap
from ddp_lessons.views.theme import (
    INK,
    LINE,
    PAPER,
    SERIES,
    WIDE,
    Picture,
    new_figure,
    picture,
    plain_axes,
)

TRAP, OTHER = SERIES[:2]  # OTHER: not between ranks
BETWEEN = 2.2  # steps of room from a panel to the next
MARKED = {"fc": OTHER, "alpha": 0.3, "ec": "none", "pad": 2}
ROOM = 14  # letters in a line of a panel's title
Pair = tuple[list[float], list[float]]  # the gaps of a trap and of its mend, step by step


def gap_panels(
    traps: Mapping[str, Run], mends: Mapping[str, Run], to: Mapping[str, Run] | None = None
) -> Picture:
    """The parameter gap of each trap and of its mend, by title: a panel each, on one scale.

    It is the gap between the ranks; for a title in `to`, that of any rank to rank 0 of the run
    there. Every step must have recorded parameters, a flat list. Raises ValueError if a trap has no
    mend under its title, if one took more steps than another, and for what parameter_gap() refuses.
    """
    to = to or {}
    if not traps or traps.keys() != mends.keys() or not to.keys() <= traps.keys():
        raise ValueError("every trap needs its mend, under the same title")
    found = {title: _pair(traps[title], mends[title], to.get(title)) for title in traps}
    counts = {len(line) for pair in found.values() for line in pair}
    if len(counts) > 1:
        raise ValueError(f"the panels share their steps, and these runs took {sorted(counts)}")
    steps = counts.pop()
    top = max(max(line) for pair in found.values() for line in pair)
    highest = top if top >= SAME else 1.0  # rounding does not fill the picture
    pace = steps + BETWEEN
    heads = {title: _broken(title) for title in found}
    rows = 1 + max(head.count("\n") for head in heads.values())
    figure = new_figure(min(WIDE, 0.27 * pace * len(found) + 0.7), 2.7 + 0.2 * rows)
    axes = plain_axes(figure)
    for index, (title, pair) in enumerate(found.items()):
        measured = f"to {_name(to[title])}" if title in to else "between ranks"
        head = {"color": INK, "va": "bottom", "annotation_clip": False}
        at = (index * pace - 0.3, 1.25 * highest)
        look = {"fontweight": "bold", "bbox": MARKED} if title in to else {}
        axes.annotate(measured, at, fontsize=10, **look, **head)
        axes.annotate(
            heads[title],
            at,
            (0, 17),
            textcoords="offset points",
            fontweight="bold",
            fontsize=11,
            **head,
        )
        _panel(axes, index * pace, pair, OTHER if title in to else TRAP)
    ticks = [index * pace + step for index in range(len(found)) for step in range(steps)]
    axes.set_xticks(ticks, [str(step + 1) for _ in found for step in range(steps)])
    axes.set_xlim(-0.5, pace * len(found) - BETWEEN)
    axes.set_ylim(-0.06 * highest, (1.45 + 0.1 * rows) * highest)
    axes.set_yticks([tick for tick in axes.get_yticks() if 0 <= tick <= 1.05 * highest])
    axes.set_xlabel("step", color=INK, fontsize=10)
    axes.set_ylabel("parameter gap", color=INK, fontsize=10, loc="bottom")
    return picture(figure, _sentence(found, traps, to))


def _pair(trap: Run, mend: Run, to: Run | None) -> Pair:
    return (gaps(trap), gaps(mend)) if to is None else (gaps((trap, to)), gaps((mend, to)))


def _name(run: Run) -> str:
    return "one process" if len(run) == 1 else run.script.rpartition("/")[2]


def _panel(axes: Any, left: float, pair: Pair, colour: str) -> None:
    trap, mend = pair
    places = [left + step for step in range(len(trap))]
    axes.plot([left - 0.3, places[-1] + 0.3], [0, 0], color=LINE, lw=1, zorder=0)
    axes.plot(places, mend, color=INK, marker="s", ms=4, lw=2, clip_on=False)
    style = "steps-mid" if _shape(trap)[0] in ("stays", "jumps") else "default"
    axes.plot(places, trap, color=colour, marker="o", ms=6, lw=2.4, ds=style, clip_on=False)
    for word, line in {"trap": trap, "mend": mend}.items():
        axes.annotate(
            f"{word} {told_gap(line[-1]) if line[-1] >= SAME else 0}",
            (places[-1] + 0.3, line[-1]),
            (0, 7),
            textcoords="offset points",
            ha="right",
            color=INK,
            fontsize=10,
            annotation_clip=False,
            bbox={"fc": PAPER, "ec": "none", "pad": 0.3},
        )


def _broken(title: str) -> str:
    """The title in lines of a panel's width."""
    rows = [""]
    for word in title.split():
        if rows[-1] and len(rows[-1]) + 1 + len(word) > ROOM:
            rows.append("")
        rows[-1] = f"{rows[-1]} {word}".strip()
    return "\n".join(rows)


def _shape(line: Sequence[float]) -> tuple[str, str]:
    """How a gap goes, in one word, and the rest of the words, the last gap among them."""
    end, begin = line[-1], next((n for n, gap in enumerate(line) if gap >= SAME), len(line))
    if begin == len(line):
        return "stays", f"under {SAME:.0e}".replace("e-0", "e-")
    if max(line[begin:]) - min(line[begin:]) < 1e-3 * end and begin < len(line) - 1:
        return (
            ("jumps", f"at step {begin + 1} to {told_gap(end)}")
            if begin
            else (
                "stays",
                f"at {told_gap(end)}",
            )
        )
    grows = all(a < b for a, b in pairwise(line[max(begin - 1, 0) :]))
    return ("grows", f"to {told_gap(end)}") if grows else ("ends", f"at {told_gap(end)}")


def _sentence(found: Mapping[str, Pair], traps: Mapping[str, Run], to: Mapping[str, Run]) -> str:
    told = []
    for title, (trap, _) in found.items():
        words = f"{title} {' '.join(_shape(trap))}"
        if title in to:
            between = told_gap(gaps(traps[title])[-1])
            words += f", measured to {_name(to[title])} (between its ranks: {between})"
        told.append(words)
    ends = {title: mend[-1] for title, (_, mend) in found.items()}
    apart = [f"{title} {told_gap(end)}" for title, end in ends.items() if end >= SAME]
    mended = f"Mended, not under 1e-6: {'; '.join(apart)}" if apart else "All mends: under 1e-6"
    return f"Parameter gap, step by step: {'; '.join(told)}. {mended}."
