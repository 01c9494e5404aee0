"""The picture of who started whom."""

from __future__ import annotations

from collections.abc import Mapping

from ddp_lessons.run import Run
from ddp_lessons.views.ancestry import ROOT, Node, sentence, trees
from ddp_lessons.views.theme import (
    EDGE,
    INK,
    SOFT,
    WIDE,
    Picture,
    new_figure,
    picture,
    plain_axes,
    rank_colour,
)

GAP, ROW, HIGH = 0.8, 1.15, 0.62  # between two trees, from row to row, height of a box
LETTER = 0.115  # width of a letter in a box
SCALE = 0.9  # inches for one of these, where there is room
MOST = 16  # ranks that are drawn


def started(runs: Run | Mapping[str, Run]) -> Picture:
    """Which process started which, down to the ranks: one tree for each run, launch() at the top.

    The guards that this course puts above its workers are left out. Ranks of an attempt that was
    restarted are dashed. Nothing above the ranks is known where there is no /proc.
    """
    named = {"": runs} if isinstance(runs, Run) else dict(runs)
    forest = {name: trees(run) for name, run in named.items()}
    count = sum(1 for roots in forest.values() for root in roots for _ in root.leaves())
    if count > MOST:
        raise ValueError(f"started() draws at most {MOST} ranks, and these are {count}")
    depth = max(root.depth() for roots in forest.values() for root in roots)
    head = 0.55 if any(forest) else 0.0
    placed, across = [], 0.0
    for name, roots in forest.items():
        wide = sum(map(width, roots)) + GAP / 2 * (len(roots) - 1)
        placed.append((name, roots, across))
        across += max(wide, len(name) * LETTER * 1.2) + GAP
    across, down = across - GAP, head + (depth - 1) * ROW + HIGH
    scale = min(SCALE, WIDE / (across + 0.3))
    figure = new_figure((across + 0.3) * scale, (down + 0.3) * scale)
    axes = plain_axes(figure)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlim(-0.15, across + 0.15)
    axes.set_ylim(down + 0.15, -0.15)
    for name, roots, left in placed:
        axes.text(left, head / 2, name, color=INK, fontsize=11, fontweight="bold", va="center")
        for root in roots:
            draw(axes, root, left, head + HIGH / 2, head + HIGH / 2 + (depth - 1) * ROW)
            left += width(root) + GAP / 2
    told = [
        f"{name}: {'; '.join(map(sentence, roots))}."
        if name
        else f"{'; '.join(map(sentence, roots))}."
        for name, roots in forest.items()
    ]
    return picture(figure, " ".join(told))


def width(node: Node) -> float:
    """How wide a process and all below it stand."""
    return max(sum(map(width, node.children)), box(node) + 0.1)


def box(node: Node) -> float:
    least = 0.9 if node.rank is not None else 1.2
    return max(least, max(map(len, lines(node))) * LETTER + 0.25)


def lines(node: Node) -> list[str]:
    """What stands in the box of a process."""
    if node.rank is None:
        return node.label.replace("torch.distributed.", "torch.distributed\n.").split("\n")
    again = [f"attempt {node.attempt}"] if node.ended or node.attempt else []
    return [f"rank {node.rank}" + (" died" if node.died else ""), *again]


def draw(axes: object, node: Node, left: float, top: float, low: float) -> float:
    """Draw a tree from `left` on; return the middle of its root. Ranks stand at `low`, however many
    processes are above them."""
    if node.rank is not None:
        middle = left + width(node) / 2
        frame(axes, node, middle, low)
        return middle
    begin = left + (width(node) - sum(map(width, node.children))) / 2
    middles = []
    for child in node.children:
        middles.append(draw(axes, child, begin, top + ROW, low))
        begin += width(child)
    middle = (middles[0] + middles[-1]) / 2
    for x, child in zip(middles, node.children, strict=True):
        end = low if child.rank is not None else top + ROW
        axes.plot([middle, x], [top + HIGH / 2, end - HIGH / 2], color=SOFT, lw=1.4, zorder=0)
    frame(axes, node, middle, top)
    return middle


def frame(axes: object, node: Node, middle: float, at: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    wide = box(node)
    place = (middle - wide / 2, at - HIGH / 2), wide, HIGH
    shape = "round,pad=0,rounding_size=0.08"
    colour = EDGE if node.rank is None else rank_colour(node.rank)
    if node.rank is not None and not node.ended:
        axes.add_patch(FancyBboxPatch(*place, fc=colour, alpha=0.18, ec="none", boxstyle=shape))
    dashes = (0, (3, 2)) if node.ended else "-"
    axes.add_patch(FancyBboxPatch(*place, fill=False, ec=colour, lw=1.5, ls=dashes, boxstyle=shape))
    axes.text(
        middle,
        at,
        "\n".join(lines(node)),
        color=SOFT if node.ended and not node.died else INK,
        fontsize=10,
        fontweight="bold" if node.label == ROOT or node.died else "normal",
        ha="center",
        va="center_baseline",
        linespacing=1.3,
    )
