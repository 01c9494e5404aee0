"""One visual language: a colour a rank, the notebook's own colours for the rest, and Picture."""

from __future__ import annotations

import base64
import html
import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Each has a contrast of at least 3:1 on the light and on the dark paper (tested), and neighbours
# stay apart for the common kinds of colour blindness.
RANKS = ("#1f77b4", "#d1600a", "#12926e", "#b5599b", "#8a7a00", "#7b6fd0", "#b04a4a", "#6f7d86")

# Drawn with these; in the SVG each becomes a variable that follows the notebook's theme.
INK, SOFT, LINE, PAPER = "#1b1c1d", "#5c6166", "#c8ccd0", "#ffffff"
DARK = {INK: "#ececec", SOFT: "#a9aeb4", LINE: "#4a4f55", PAPER: "#111111"}
_NAMES = {INK: "ink", SOFT: "soft", LINE: "line", PAPER: "paper"}

MONO = "DejaVu Sans Mono"


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
