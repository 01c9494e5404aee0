"""One visual language: a colour a rank, the notebook's own colours for the rest, and Picture."""

from __future__ import annotations

import base64
import html
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Each has a contrast of at least 3:1 on the light and on the dark paper, and neighbours stay apart
# for the common kinds of colour blindness (tested). Others do not, so a mark never has its colour
# alone: the rank's number stands in it, beside it or at the head of its row.
RANKS = ("#1f77b4", "#d1600a", "#12926e", "#b5599b", "#8a7a00", "#7b6fd0", "#b04a4a", "#6f7d86")

# For lines that stand for runs, not for ranks: the colours of ranks that lessons seldom have.
SERIES = (*RANKS[6:4:-1], RANKS[7], RANKS[4], RANKS[3], RANKS[2])

# Drawn with these; in the SVG each becomes a variable that follows the notebook's theme. EDGE is
# the outline of a thing without a colour of its own; LINE is decoration, like the lines of a grid.
INK, SOFT, EDGE = "#1b1c1d", "#5c6166", "#80868c"
LINE, PAPER = "#c8ccd0", "#ffffff"
DARK = {INK: "#ececec", SOFT: "#a9aeb4", EDGE: "#7f878f", LINE: "#4a4f55", PAPER: "#111111"}
_NAMES = {INK: "ink", SOFT: "soft", EDGE: "edge", LINE: "line", PAPER: "paper"}

MONO = "DejaVu Sans Mono"
LEAST = 10.0  # points: no smaller than the code in a notebook
WIDE = 8.6  # inches, at most: a wider picture would be shrunk by its cell


def rank_colour(rank: int) -> str:
    return RANKS[rank % len(RANKS)]


@dataclass(frozen=True)
class Picture:
    """A figure and the one sentence that says what it shows.

    The sentence is the caption, the alternative text and the whole text form.
    """

    svg: str
    png: bytes
    sentence: str

    def __repr__(self) -> str:
        return self.sentence

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {
            "text/plain": self.sentence,
            "text/html": self.html(),
            "image/png": base64.b64encode(self.png).decode(),
        }

    def html(self) -> str:
        data = base64.b64encode(self.svg.encode()).decode()
        text = html.escape(self.sentence)
        return (
            f"<style>{PICTURE_CSS}</style>"
            f'<figure class="ddp-picture"><img src="data:image/svg+xml;base64,{data}" '
            f'alt="{text}"><figcaption>{text}</figcaption></figure>'
        )


# An SVG image follows the colour scheme of its <img>; the notebook's theme sets that one.
PICTURE_CSS = (
    ".ddp-picture{margin:.5em 0}"
    ".ddp-picture img{color-scheme:light;max-width:100%}"
    '[data-jp-theme-light="false"] .ddp-picture img{color-scheme:dark}'
    ".ddp-picture figcaption{color:var(--jp-content-font-color1,inherit);"
    "font-size:var(--jp-content-font-size1,14px);max-width:48em;margin-top:.25em}"
)


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of `width` x `height` inches, with 10 point text."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    figure.patch.set_facecolor(PAPER)
    return figure


def plain_axes(figure: Figure, **kwargs: Any) -> Any:
    """Axes without a box, in the theme's colours."""
    axes = figure.add_subplot(**kwargs)
    axes.set_facecolor(PAPER)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.tick_params(colors=INK, length=0, labelsize=10)
    return axes


def cell(
    axes: Any,
    box: tuple[float, float, float, float],
    colour: str,
    strength: float = 0.3,
    edge: float = 1.4,
) -> None:
    """A box (left, low, width, height) of one colour, on which text can be read in both themes."""
    from matplotlib.patches import Rectangle

    left, low, wide, high = box
    at = ((left, low), wide, high)
    axes.add_patch(Rectangle(*at, fc=colour, alpha=strength, ec="none"))
    axes.add_patch(Rectangle(*at, fill=False, ec=colour, lw=edge))


def slices(
    axes: Any,
    box: tuple[float, float, float, float],
    ranks: Sequence[int],
    strength: float = 0.45,
    footed: bool = True,
) -> None:
    """A box (left, low, width, height) in as many colours as ranks, from left to right."""
    from matplotlib.patches import Rectangle

    left, low, wide, high = box
    each = wide / max(1, len(ranks))
    foot = 0.12 * high  # strong, for the slices themselves are pale under their number
    for place, rank in enumerate(ranks):
        x, colour = left + place * each, rank_colour(rank)
        axes.add_patch(Rectangle((x, low), each, high, fc=colour, alpha=strength, ec="none"))
        if footed:
            axes.add_patch(Rectangle((x, low + high - foot), each, foot, fc=colour, ec="none"))


def picture(figure: Figure, sentence: str) -> Picture:
    """Finish a figure. Its SVG is the same text for the same drawing, and follows the theme."""
    import matplotlib

    settings = {"svg.fonttype": "path", "svg.hashsalt": "ddp-lessons"}
    with matplotlib.rc_context(settings):
        svg, png = io.StringIO(), io.BytesIO()
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        figure.savefig(png, format="png", dpi=110, metadata={"Software": None})
    return Picture(themed(svg.getvalue()), png.getvalue(), sentence)


def themed(svg: str) -> str:
    """Replace the theme's colours by variables, with a dark set for a dark scheme."""
    light = ";".join(f"--{name}:{colour}" for colour, name in _NAMES.items())
    dark = ";".join(f"--{_NAMES[colour]}:{other}" for colour, other in DARK.items())
    style = f"<style>:root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}</style>"
    for colour, name in _NAMES.items():
        svg = re.sub(rf"\b(fill|stroke): {colour}", rf"\1: var(--{name})", svg)
        # The paper behind a hatch is an attribute, where variables do not work.
        svg = re.sub(rf'\b(fill|stroke)="{colour}"', rf'style="\1: var(--{name})"', svg)
    svg = svg[svg.index("<svg") :]
    head, _, rest = svg.partition(">")
    return f"{head}>{style}{rest}"
