"""What a reader with a projector, a dark theme or other eyes would find wrong with a picture.

Figures are looked at as they are drawn: the sizes and places of their texts, and the pixels behind.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import Collection
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

from ddp_lessons.views import theme

DPI = 100
DECORATION = (theme.LINE, theme.PAPER)  # nothing is lost with these
LIGHT = {colour: colour for colour in theme.DARK}


@contextlib.contextmanager
def looked_at() -> Iterator[list[tuple[Figure, list[str]]]]:
    """Every figure that a view draws inside, and its faults."""
    found: list[tuple[Figure, list[str]]] = []
    real = Figure.savefig

    def spied(figure: Figure, *args: Any, **more: Any) -> None:
        real(figure, *args, **more)
        if more.get("format") == "png":  # the last that a view does with a figure
            found.append((figure, faults(figure)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", spied)
        yield found


def faults(figure: Figure) -> list[str]:
    """One sentence for each. Changes the figure."""
    shown = texts(figure)
    found = [f"{t.get_text()!r} is small: {t.get_fontsize():.3g}" for t in shown if small(t)]
    width, _ = figure.get_size_inches()
    if width > theme.WIDE + 0.01:
        found.append(f"wider than a cell of a notebook: {width:.2f} inches")
    figure.set_dpi(DPI)
    FigureCanvasAgg(figure).draw()
    places = {text: Text.get_window_extent(text) for text in shown}
    wide, high = figure.bbox.width, figure.bbox.height
    for text, box in places.items():
        if box.x0 < -1 or box.y0 < -1 or box.x1 > wide + 1 or box.y1 > high + 1:
            found.append(f"{text.get_text()!r} is cut off by the edge")
    for (one, a), (other, b) in combinations(places.items(), 2):
        across = min(a.x1, b.x1) - max(a.x0, b.x0)
        down = min(a.y1, b.y1) - max(a.y0, b.y0)
        if across > 1.5 and down > 2.5:  # descenders may touch
            found.append(f"{one.get_text()!r} runs into {other.get_text()!r}")
    for name, colours in (("light", LIGHT), ("dark", theme.DARK)):
        recolour(figure, colours)
        found += [f"{name}: {told}" for told in pale_marks(figure, colours[theme.PAPER])]
        found += [f"{name}: {told}" for told in pale_texts(figure, places)]
        recolour(figure, {dark: light for light, dark in colours.items()})
    return found


def small(text: Text) -> bool:
    return text.get_fontsize() < theme.LEAST


def texts(figure: Any) -> list[Text]:
    """All that is drawn and says something."""
    found = [*figure.texts]
    for part in figure.subfigs:
        found += texts(part)
    for axes in figure.axes if isinstance(figure, Figure) else ():
        found += [*axes.texts, axes.title, axes._left_title, axes._right_title]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            found += [axis.label]
            for place, label in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True):
                found += [label] if low <= place <= high else []
    return [text for text in found if text.get_text().strip() and text.get_visible()]


# Marks: what is drawn, by the colours that it was given


def pale_marks(figure: Figure, paper: str) -> Iterator[str]:
    every = patches(figure)
    outlines = [p.get_extents() for p in every if outlined(p, paper)]
    filled = [p.get_extents() for p in every if p.get_fill() and stands_out(face(p), paper)]
    for patch in every:
        # A pale face can be seen by an outline around it, or by a strong strip of its width.
        box, colour = patch.get_extents(), face(patch)
        seen = any(inside(box, one) for one in outlines) or any(
            inside(one, box) and abs(one.width - box.width) < 1 for one in filled
        )
        if not seen and not decoration([colour, patch.get_edgecolor()]):
            yield f"a {type(patch).__name__} of {to_hex(colour)} is pale"
    for axes in figure.axes:
        strong = [line for line in axes.lines if any(stands_out(c, paper) for c in colours(line))]
        for line in set(axes.lines) - set(strong):
            if not decoration(colours(line)) and not any(same_path(line, one) for one in strong):
                yield f"a line of {[*map(to_hex, colours(line))]} is pale"
        for bars in axes.collections:
            found = [*bars.get_facecolor(), *bars.get_edgecolor()]
            if not decoration(found) and not any(stands_out(c, paper) for c in found):
                yield f"bars of {[*map(to_hex, found)]} are pale"


def patches(figure: Figure) -> list[Patch]:
    return [patch for axes in figure.axes for patch in axes.patches]


def face(patch: Patch) -> Any:
    return patch.get_facecolor() if patch.get_fill() else (0, 0, 0, 0)


def outlined(patch: Patch, paper: str) -> bool:
    drawn = patch.get_linewidth() > 0 or patch.get_hatch()
    return bool(drawn) and stands_out(patch.get_edgecolor(), paper)


def inside(small: Any, large: Any, room: float = 1.5) -> bool:
    return (
        large.x0 - room <= small.x0
        and small.x1 <= large.x1 + room
        and large.y0 - room <= small.y0
        and small.y1 <= large.y1 + room
    )


def colours(line: Line2D) -> list:
    alpha = line.get_alpha()
    found = [line.get_color()] if line.get_linestyle() != "None" else []
    if line.get_marker() not in ("None", None, ""):
        found += [line.get_markeredgecolor(), line.get_markerfacecolor()]
    return [to_rgba(c, alpha) for c in found if str(c) != "none"]


def same_path(one: Line2D, other: Line2D) -> bool:
    return np.array_equal(one.get_xydata(), other.get_xydata())


def decoration(colours: list) -> bool:
    plain = {c for those in (LIGHT, theme.DARK) for d in DECORATION for c in (those[d],)}
    return all(to_rgba(c)[3] == 0 or to_hex(c) in plain for c in colours)


def stands_out(colour: Any, paper: str) -> bool:
    *rgb, alpha = to_rgba(colour)
    mixed = alpha * np.array(rgb) + (1 - alpha) * np.array(to_rgba(paper)[:3])
    return contrast(mixed, np.array(to_rgba(paper)[:3])) >= 3


# Texts: their colour beside each pixel behind them


def pale_texts(figure: Figure, places: dict[Text, Any]) -> Iterator[str]:
    inks = {text: to_rgba(text.get_color()) for text in places}
    for text in places:
        text.set_color((0, 0, 0, 0))  # what is drawn under it stays
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[::-1, :, :3] / 255
    for text, box in places.items():
        text.set_color(inks[text])
        x0, y0, x1, y1 = (max(0, round(value)) for value in box.extents)
        behind = pixels[y0:y1, x0:x1].reshape(-1, 3)
        # A line may run past a letter.
        share = np.mean(contrast(np.array(inks[text][:3]), behind) < 4.5) if len(behind) else 0
        if share > 0.1:
            yield f"{text.get_text()!r} is hard to read: too little contrast on {share:.0%}"


def contrast(one: Any, other: Any) -> Any:
    """WCAG's, of colours from 0 to 1."""
    a, b = luminance(one), luminance(other)
    return (np.maximum(a, b) + 0.05) / (np.minimum(a, b) + 0.05)


def luminance(rgb: Any) -> Any:
    rgb = np.asarray(rgb)
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return linear @ np.array([0.2126, 0.7152, 0.0722])


# The dark theme, as the style in the SVG makes it


def recolour(figure: Figure, colours: dict[str, str]) -> None:
    def other(colour: Any) -> Any:
        if colour is None or str(colour) in ("none", "auto"):
            return colour
        new = colours.get(to_hex(colour))
        return colour if new is None else (*to_rgba(new)[:3], to_rgba(colour)[3])

    for artist in figure.findobj():
        if isinstance(artist, Line2D):
            artist.set_color(other(artist.get_color()))
            artist.set_markeredgecolor(other(artist.get_markeredgecolor()))
            artist.set_markerfacecolor(other(artist.get_markerfacecolor()))
        elif isinstance(artist, Patch):
            face, edge = artist.get_facecolor(), artist.get_edgecolor()
            artist.set_alpha(None)
            artist.set_facecolor(other(face))
            artist.set_edgecolor(other(edge))
        elif isinstance(artist, Collection):
            artist.set_facecolor([other(c) for c in artist.get_facecolor()])
            artist.set_edgecolor([other(c) for c in artist.get_edgecolor()])
        elif isinstance(artist, Text):
            artist.set_color(other(artist.get_color()))
            if artist.get_bbox_patch():
                under = artist.get_bbox_patch()
                under.set_facecolor(other(under.get_facecolor()))
