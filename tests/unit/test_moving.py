"""Where a widget stands, and what stands there for whoever cannot see it."""

from __future__ import annotations

import ipywidgets
import pytest

from ddp_lessons import views
from ddp_lessons.views import moving, theme

STILL = theme.Picture("<svg/>", b"", "Rank 1 waits.")


@pytest.fixture
def shown(monkeypatch):
    found: list = []
    monkeypatch.setattr("IPython.display.display", lambda thing, **_: found.append(thing))
    return found


@pytest.fixture
def somebody_looks(monkeypatch):
    monkeypatch.setattr(moving, "live_page", lambda: object())


def test_where_nobody_looks_there_is_the_still_picture_alone(shown):
    moving.display_moving(lambda: pytest.fail("made a widget for nobody"), STILL)
    assert shown == [STILL]


def test_without_ipywidgets_there_is_the_still_picture_alone(shown, somebody_looks, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ipywidgets", None)
    made = views.sampler(10, 4)
    made._ipython_display_()
    assert shown == [made.still]


def test_a_front_end_without_widgets_finds_picture_and_sentence_in_the_same_output(
    shown, somebody_looks
):
    box = ipywidgets.VBox()
    moving.display_moving(lambda: box, STILL)
    view, folded = shown
    assert view[moving.WIDGET]["model_id"] == box.model_id
    assert view["text/html"] == STILL.html()
    assert view["text/plain"] == folded["text/plain"] == "Rank 1 waits."
    assert folded["text/html"].startswith("<details><summary>")
    assert STILL.html() in folded["text/html"]
