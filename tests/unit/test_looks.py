"""Every picture can be read: from the last row, in the dark theme, and without some colours."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import test_failure_views
import test_number_grid
import test_panels
import test_resumption
import test_ring_views
import test_shard_views
import test_started
import test_timeline
import test_views
from looks import contrast, faults, looked_at
from matplotlib.patches import Rectangle

from ddp_lessons import views
from ddp_lessons.machine import Fact, Machine
from ddp_lessons.placement import place
from ddp_lessons.run import Call, Rank, Run
from ddp_lessons.source import show
from ddp_lessons.views import html, theme
from ddp_lessons.views.player import Player


def busy(ranks: int, steps: int, asynchronous: bool = False) -> Run:
    """A run of many short calls, like an exercise's: some at once, one of them long."""
    made = []
    for rank in range(ranks):
        calls, clock = [], 0.0
        for step in range(steps):
            begin = clock + 0.0003 * rank
            end = begin + (0.04 if step == 1 else 0.001)
            facts = {"asynchronous": True, "waited": end, "done": end + 0.002, "wait_line": 23}
            calls.append(
                Call(
                    *(rank, step, "all_reduce", tuple(range(ranks)), step, "x.py", 14 + step % 2),
                    *(begin, begin + 0.0005 if asynchronous else end),
                    **(facts if asynchronous else {}),
                )
            )
            clock = begin + 0.002 if asynchronous and step % 3 else end + 0.004
        made.append(Rank(rank, "cpu", 1, 1, 0, "", "", (), True, calls=tuple(calls)))
    placed = place(ranks, gpus=0, nccl=False)
    return Run("some.py", ranks, placed, 0.5, tuple(made), Path("log"))


def nodes(count: int, each: int) -> Run:
    ranks = [
        test_views.a_rank(count_each, node=count_each // each, local_rank=count_each % each)
        for count_each in range(count * each)
    ]
    return test_views.a_run(*ranks)


grid, timeline = test_number_grid, test_timeline
PICTURES: dict[str, Callable[[], theme.Picture]] = {
    **test_views.PICTURES,
    **test_failure_views.PICTURES,
    **test_ring_views.PICTURES,
    **{f"shards: {name}": made for name, made in test_shard_views.PICTURES.items()},
    "a sum of three": lambda: views.before_after(
        *(grid.alike(3, {"x": [3, 2, 1]}, {"x": [333, 222, 111]}) for _ in range(2))
    ),
    "who came not back": lambda: views.before_after(
        grid.a_run({}, grid.call({"x": 30, "parts": None}, None))
    ),
    "calls of many steps": lambda: views.calls(busy(3, 9)),
    "calls of very many steps": lambda: views.calls(busy(3, 16)),
    "calls that are under way together": lambda: views.calls(busy(2, 9, asynchronous=True)),
    "two nodes": lambda: views.machines(nodes(2, 2)),
    "eight ranks on each of two nodes": lambda: views.machines(nodes(2, 8)),
    "64 ranks": lambda: views.machines(nodes(1, 64)),
    "panels": test_panels.three,
    "resumed": lambda: test_resumption.drawn(
        exact=test_resumption.WHOLE, lost=test_resumption.APART
    ),
    "the timeline": lambda: views.timeline(
        {"One bucket": timeline.ONE_RUN, "Many": timeline.MANY_RUN}
    ),
    "who started whom": lambda: views.started(
        {"default": test_started.SERVED, "two nodes": test_started.TWO}
    ),
    "who was restarted": lambda: views.started(test_started.RESTARTED),
    "40 samples on one rank": lambda: views.sampler(40, 1).still,
    "40 samples on eight ranks": lambda: views.sampler(37, 8, shuffle=True, drop_last=True).still,
    "a frame on the way": lambda: views.ring(test_ring_views.ring(4)).frames[2](),
    "a ring of eight": lambda: views.ring(test_ring_views.ring(8)).frames[5](),
    "all steps of a ring of eight": lambda: views.ring(test_ring_views.ring(8)).still,
    "ten thousand bytes a link": lambda: views.links(
        {"star": test_ring_views.star(6, 40_000), "ring": test_ring_views.ring(6, 900)}
    ),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_readable_in_both_themes_and_nothing_is_cut_off_or_overlaps(name):
    with looked_at() as found:
        PICTURES[name]()
    assert [told for _, those in found for told in those] == []
    assert found


def wrong(what: str) -> list[str]:
    """The faults of a figure that has one."""
    figure = theme.new_figure(4, 3)
    axes = theme.plain_axes(figure)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xticks([])
    axes.set_yticks([])
    text = {"color": theme.INK, "fontsize": 10}
    if what == "small":
        axes.text(0.5, 0.5, "a", color=theme.INK, fontsize=8)
    elif what == "cut off":
        axes.text(0.9, 0.5, "far too long to be seen", **text, in_layout=False)
    elif what == "overlap":
        axes.text(0.3, 0.5, "one label", **text)
        axes.text(0.35, 0.51, "another", **text)
    elif what == "ink on a full colour":
        axes.add_patch(Rectangle((0.2, 0.2), 0.6, 0.6, color=theme.RANKS[0]))
        axes.text(0.4, 0.5, "a", **text)
    elif what == "quiet on half a colour":
        axes.add_patch(Rectangle((0.2, 0.2), 0.6, 0.6, color=theme.RANKS[1], alpha=0.5))
        axes.text(0.4, 0.5, "a", color=theme.SOFT, fontsize=10)
    elif what == "a pale box":
        axes.add_patch(Rectangle((0.2, 0.2), 0.6, 0.6, fc=theme.RANKS[0], alpha=0.2, ec="none"))
    elif what == "a pale line":
        axes.plot([0, 1], [0, 1], color=theme.RANKS[0], alpha=0.4)
    elif what == "wide":
        figure.set_size_inches(9, 3)
    elif what != "nothing":
        raise KeyError(what)
    return faults(figure)


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("small", "is small"),
        ("cut off", "cut off by the edge"),
        ("overlap", "runs into"),
        ("ink on a full colour", "light: 'a' is hard to read"),
        ("quiet on half a colour", "hard to read"),
        ("a pale box", "dark: a Rectangle"),
        ("a pale line", "light: a line"),
        ("wide", "wider than a cell"),
    ],
)
def test_each_fault_of_a_picture_is_found(what, told):
    assert wrong("nothing") == []
    found = wrong(what)
    assert any(told in one for one in found), found


# The colours of ranks, for readers who see fewer

# Machado, Oliveira and Fernandes, "A physiologically-based model for simulation of color vision
# deficiency", IEEE TVCG 15 (6), 2009: severity 1.0, for linear RGB.
EYES = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "all cones": np.eye(3),
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def lab(colour: str, eye: str) -> np.ndarray:
    """CIELAB of a colour as that eye sees it."""
    rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(EYES[eye]) @ linear, 0, 1)
    x, y, z = XYZ @ seen / np.array([0.9505, 1, 1.089])
    a, b, c = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x, y, z))
    return np.array([116 * b - 16, 500 * (a - b), 200 * (b - c)])


@pytest.mark.parametrize("eye", EYES)
def test_neighbouring_ranks_can_be_told_apart_by_colour(eye):
    for one, other in pairwise([*theme.RANKS, theme.RANKS[0]]):
        # 2.3 is the least that anyone can see, side by side.
        assert np.linalg.norm(lab(one, eye) - lab(other, eye)) > 20, (one, other)


@pytest.mark.parametrize("eye", EYES)
def test_the_lines_of_two_or_three_runs_can_be_told_apart_by_colour(eye):
    for one, other in [(0, 1), (0, 2), (1, 2)]:
        there = [lab(theme.SERIES[n], eye) for n in (one, other)]
        assert np.linalg.norm(there[0] - there[1]) > 20, (one, other)


# Tables and code

LAB = {  # JupyterLab's own colours: text, paper, every second row, keywords, strings
    "light": ("rgba(0,0,0,.87)", "#ffffff", "#f5f5f5", "#008000", "#ba2121"),
    "dark": ("#ffffff", "#111111", "#212121", "#4caf50", "#ff7070"),
}


def mixed(over: np.ndarray, under: np.ndarray, alpha: float) -> np.ndarray:
    return alpha * over + (1 - alpha) * under


def rgb(colour: str) -> np.ndarray:
    return np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])


@pytest.mark.parametrize("name", LAB)
def test_code_and_quiet_text_can_be_read_on_every_row(name):
    ink, paper, row, keyword, string = LAB[name]
    paper = rgb(paper)
    text = mixed(np.zeros(3), paper, 0.87) if name == "light" else rgb(ink)
    red, green, blue, alpha = lit()
    lit_row = mixed(np.array([red, green, blue]) / 255, paper, alpha)
    assert f"opacity:{QUIET:g}".replace("0.", ".") in html.CSS
    for under in (paper, rgb(row), lit_row):
        assert contrast(mixed(text, under, QUIET), under) >= 4.5
        assert contrast(rgb(keyword), under) >= 4.5
        assert contrast(rgb(string), under) >= 4.5


QUIET = 0.75


def lit() -> tuple[float, ...]:
    """The colour that css gives to a lit line."""
    inside = html.CSS.partition(".ddp-lit{background:rgba(")[2].partition(")")[0]
    return tuple(map(float, inside.split(",")))


def test_code_has_no_colour_that_nobody_has_measured():
    named = {part.split(",")[0].split(")")[0] for part in html.CSS.split("var(--jp-")[1:]}
    colours = {name for name in named if name.endswith(("color", "color1", "color2"))}
    assert colours == {
        *("content-font-color1", "border-color2"),
        *("mirror-editor-keyword-color", "mirror-editor-string-color"),
    }


TABLES = {
    "run": lambda: html.run(test_views.TALKING),
    "hang": lambda: html.run(test_failure_views.SLEEPS),
    "machine": lambda: html.machine(
        Machine(True, "fine", (Fact("torch", "2"),), ("use it",), (("00", True),))
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_every_table_has_a_caption_and_every_heading_a_scope(name):
    found = test_views.parsed(TABLES[name]()).found
    tags = [tag for tag, _ in found]
    assert tags.count("table") == tags.count("caption") > 0
    assert all(
        attributes.get("scope") in ("col", "row") for tag, attributes in found if tag == "th"
    )


def test_what_can_be_unfolded_is_a_button_of_the_browser():
    found = test_views.parsed(html.source(show("01_why_ddp/ddp.py", light="set_epoch"))).found
    tags = [tag for tag, _ in found]
    assert tags.count("details") == tags.count("summary") == 1


def test_every_control_of_a_widget_has_a_name():
    ipywidgets = pytest.importorskip("ipywidgets")
    made = [
        views.sampler(10, 4).widget(),
        Player(test_views.PICTURES["starts"](), [test_views.PICTURES["starts"]]).widget(),
    ]
    for box in made:
        for control in controls(box):
            if isinstance(control, ipywidgets.Play):
                continue  # its buttons have titles of their own
            assert control.description, control


def controls(box: object) -> list:
    inside = getattr(box, "children", None)
    if inside is None:
        return [box] if hasattr(box, "value") and type(box).__name__ != "HTML" else []
    return [control for child in inside for control in controls(child)]
