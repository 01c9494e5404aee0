"""Panels of parameter gaps, from made-up runs."""

from __future__ import annotations

import html
from math import nan
from pathlib import Path

import pytest

from ddp_lessons import views
from ddp_lessons.placement import place
from ddp_lessons.run import Rank, Record, Run
from ddp_lessons.views import panels, theme


def trained(*ranks: list[float], script: str = "some.py") -> Run:
    """A run whose ranks recorded one parameter, a number for each step."""
    made = [
        Rank(
            rank=number,
            device="cpu",
            pid=1,
            parent=1,
            exitcode=0,
            stdout="",
            stderr="",
            records=tuple(Record(number, "step", 1.0, 1, {"parameters": [w]}) for w in weights),
            finished=True,
        )
        for number, weights in enumerate(ranks)
    ]
    placed = place(len(made), gpus=0, nccl=False)
    return Run(script, len(made), placed, 0.5, tuple(made), Path("log"))


APART, GROWING = trained([1.0, 1.0], [2.0, 2.0]), trained([0.0, 0.0], [0.1, 0.2])
MENDED = trained([1.0, 2.0], [1.0, 2.0])
WRONG = trained([1.0, 1.5], [1.0, 1.5])  # the ranks agree with each other
ONE = trained([1.0, 2.0])


def three() -> theme.Picture:
    return views.gap_panels(
        {"apart": APART, "growing": GROWING, "wrong": WRONG},
        {"apart": MENDED, "growing": MENDED, "wrong": MENDED},
        to={"wrong": ONE},
    )


def test_panels_say_the_last_gap_of_each_trap_and_of_its_mend() -> None:
    assert repr(three()) == (
        "Parameter gap, step by step: apart stays at 1.0; growing grows to 0.2; wrong grows "
        "to 0.5, measured to one process (between its ranks: under 1e-6). All mends: under 1e-6."
    )


def test_the_words_for_a_gap_are_those_of_its_shape() -> None:
    told = {"stays": [1, 1, 1], "jumps": [0, 1, 1], "grows": [0, 1, 2], "ends": [2, 1, 2]}
    assert {word: panels._shape(line)[0] for word, line in told.items()} == {w: w for w in told}
    assert panels._shape([0, 1, 1, 1]) == ("jumps", "at step 2 to 1.0")
    assert panels._shape([0.0, 1e-9]) == ("stays", "under 1e-6")


def test_a_mend_that_leaves_a_gap_is_named() -> None:
    told = repr(views.gap_panels({"a": APART, "b": APART}, {"a": GROWING, "b": MENDED}))
    assert told.endswith("Mended, not under 1e-6: a 0.2.")


def test_a_run_of_several_ranks_to_compare_with_bears_its_scripts_name() -> None:
    other = trained([1.0, 2.0], [1.0, 2.0], script="09_x/other.py")
    told = repr(views.gap_panels({"wrong": WRONG}, {"wrong": MENDED}, to={"wrong": other}))
    assert "measured to other.py (" in told


def test_the_caption_says_what_the_text_says() -> None:
    made = three()._repr_mimebundle_()
    assert f"<figcaption>{html.escape(made['text/plain'])}</figcaption>" in made["text/html"]


def test_panels_leave_ink_and_paper_to_the_theme() -> None:
    drawing = three().svg.partition("</style>")[2]
    assert "var(--ink)" in drawing
    for colour in (theme.INK, theme.LINE, theme.PAPER):
        assert colour not in drawing


def test_the_same_runs_make_the_same_picture() -> None:
    assert three().svg == three().svg


def test_gaps_that_are_all_rounding_can_be_drawn() -> None:
    told = repr(views.gap_panels({"a": MENDED}, {"a": trained([1.0, 2.0], [1.0, 2.0 + 1e-8])}))
    assert told == "Parameter gap, step by step: a stays under 1e-6. All mends: under 1e-6."


@pytest.mark.parametrize(
    ("traps", "mends", "to", "reason"),
    [
        ({}, {}, {}, "needs its mend"),
        ({"a": APART}, {}, {}, "needs its mend"),
        ({"a": APART}, {"b": MENDED}, {}, "needs its mend"),
        ({"a": APART}, {"a": MENDED}, {"b": ONE}, "needs its mend"),
        ({"a": APART}, {"a": trained([1.0], [1.0])}, {}, "share their steps"),
        ({"a": APART}, {"a": MENDED}, {"a": trained([1.0])}, "as often"),
        ({"a": trained([nan, 1.0])}, {"a": MENDED}, {}, "not a number"),
    ],
)
def test_what_cannot_be_compared_is_not_drawn(traps, mends, to, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        views.gap_panels(traps, mends, to)
