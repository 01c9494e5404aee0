"""Gradients of a model with two parameters, as arrows."""

from __future__ import annotations

from collections.abc import Sequence
from math import dist, hypot
from typing import Any

from ddp_lessons.run import Run, short
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

SAME = 1e-6  # two arrows whose tips are nearer than that are one


def gradient_arrows(parts: Run, whole: Run) -> Picture:
    """Each rank's own gradient, their sum and their mean beside the gradient of the global batch.

    `parts` recorded local, sum and mean on every rank, `whole` mean on its only rank: lists of two
    numbers. Raises ValueError if they are not.
    """
    own = parts.values("local")
    total, mean, big = parts.values("sum")[0], parts.values("mean")[0], whole.values("mean")[0]
    if any(not isinstance(arrow, list) or len(arrow) != 2 for arrow in (*own, total, mean, big)):
        raise ValueError("a gradient of two numbers can be drawn as an arrow, no other")
    figure = new_figure(7.4, 4.4)
    axes = plain_axes(figure)
    axes.set_aspect("equal")
    band = {"solid_capstyle": "butt", "zorder": 1}
    for colour, lw, alpha in ((SOFT, 15, 1), (PAPER, 12.5, 1), (SOFT, 12.5, 0.3)):
        axes.plot([0, big[0]], [0, big[1]], color=colour, lw=lw, alpha=alpha, **band)
    axes.plot([0, total[0]], [0, total[1]], color=INK, lw=1.6, ls=(0, (4, 2.5)))
    _head(axes, total, INK)
    for tip, who in _by_tip(own):
        _arrow(axes, tip, rank_colour(who[0]))
        above = tip[1] > tip[0]
        ranks = f"rank{'s' if who[1:] else ''} {' and '.join(map(str, who))} alone"
        away, side = ((-8, 20), "center") if above else ((10, -10), "left")
        _label(axes, tip, ranks, away, side)
    _arrow(axes, mean, INK)
    same = dist(mean, big) < SAME
    text = "mean = global batch's gradient" if same else "mean"
    _label(axes, mean, text, (14, 0), "left", bold=True)
    if not same:
        _label(axes, big, "global batch's gradient", (14, 34), "left")
    _label(axes, total, f"sum: {_ratio(total, mean)} times as long", (10, -4), "left")
    _limits(axes, [*own, total, mean, big, [0, 0]])
    return picture(figure, _sentence(own, total, mean, big))


def _by_tip(own: list) -> list[tuple[list[float], list[int]]]:
    """Each different gradient and the ranks that have it."""
    tips: dict[tuple, list[int]] = {}
    for rank, tip in enumerate(own):
        tips.setdefault(tuple(tip), []).append(rank)
    return [(list(tip), who) for tip, who in tips.items()]


def _arrow(axes: Any, tip: Sequence[float], colour: str) -> None:
    from matplotlib.patches import FancyArrowPatch

    style = "-|>,head_length=0.5,head_width=0.25"
    axes.add_patch(
        FancyArrowPatch(
            (0, 0),
            tuple(tip),
            arrowstyle=style,
            mutation_scale=22,
            shrinkA=0,
            shrinkB=0,
            lw=3,
            color=colour,
            joinstyle="miter",
            zorder=3,
        )
    )


def _head(axes: Any, tip: Sequence[float], colour: str) -> None:
    """The head alone: with a dashed line its outline would be dashed, too."""
    from matplotlib.patches import FancyArrowPatch

    near = (0.97 * tip[0], 0.97 * tip[1])
    axes.add_patch(
        FancyArrowPatch(
            near,
            tuple(tip),
            arrowstyle="-|>",
            mutation_scale=18,
            shrinkA=0,
            shrinkB=0,
            color=colour,
        )
    )


def _label(
    axes: Any,
    tip: Sequence[float],
    text: str,
    away: tuple[float, float],
    side: str,
    bold: bool = False,
) -> None:
    axes.annotate(
        f"{text}\n{_point(tip)}",
        tuple(tip),
        away,
        textcoords="offset points",
        ha=side,
        va="center",
        color=INK,
        fontsize=11.5,
        fontweight="bold" if bold else "normal",
    )


def _limits(axes: Any, tips: list) -> None:
    xs, ys = [tip[0] for tip in tips], [tip[1] for tip in tips]
    room = 0.1 * max(max(xs) - min(xs), max(ys) - min(ys), 1e-9)
    axes.set_xlim(min(xs) - room, max(xs) + 6 * room)
    axes.set_ylim(min(ys) - room, max(ys) + 2 * room)
    axes.axhline(0, color=LINE, lw=1, zorder=0)
    axes.axvline(0, color=LINE, lw=1, zorder=0)
    axes.set_xticks(range(int(max(xs)) + 1))
    axes.set_yticks(range(int(max(ys)) + 1))
    axes.set_xlabel("gradient of the first parameter", color=INK, fontsize=10, loc="left")
    axes.set_ylabel("gradient of the second", color=INK, fontsize=10, loc="bottom")


def _ratio(total: Sequence[float], mean: Sequence[float]) -> str:
    return _plain(hypot(*total) / hypot(*mean)) if hypot(*mean) else "no"


def _plain(number: float) -> str:
    """Four digits; a whole number without its point."""
    return short(number).removesuffix(".0")


def _sentence(own: list, total: list, mean: list, big: list) -> str:
    verdict = "is" if dist(mean, big) < SAME else "is not"
    return (
        f"The mean of the {len(own)} ranks' gradients, {_point(mean)}, {verdict} the gradient of "
        f"the global batch, {_point(big)}. Their sum is {_ratio(total, mean)} times as long."
    )


def _point(tip: Sequence[float]) -> str:
    return f"({_plain(tip[0])}, {_plain(tip[1])})"
