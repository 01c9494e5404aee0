"""Each widget of the lessons, moved by keyboard and by mouse: its picture follows."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator

import lab

pytestmark = pytest.mark.slow

# In all of these the picture stands above or below its controls, in the same widget.
WIDGET = ".jp-OutputArea-output .widget-vbox"


@pytest.fixture
def widget(open_notebook):
    """A function that runs a lesson and returns its widget, with the one picture in it."""

    def shown(path: str) -> Locator:
        notebook = open_notebook(path)
        notebook.run_all()
        found = notebook.page.locator(WIDGET)
        found.locator("img").wait_for()
        assert found.count() == 1
        return found

    return shown


def picture(widget: Locator) -> str:
    return widget.locator("img").get_attribute("src")


def changes(widget: Locator, act) -> str:
    """Do something and wait until the picture is another one; return it."""
    before = picture(widget)
    act()
    widget.page.wait_for_function(
        "([image, before]) => image.isConnected && image.src !== before"
        " || document.querySelector('.jp-OutputArea-output .widget-vbox img').src !== before",
        arg=[widget.locator("img").element_handle(), before],
    )
    return picture(widget)


def drag(widget: Locator, slider: Locator) -> None:
    """Press the knob of a slider and pull it to the far end."""
    knob, track = slider.locator(".noUi-handle").bounding_box(), slider.bounding_box()
    mouse = widget.page.mouse
    mouse.move(knob["x"] + knob["width"] / 2, knob["y"] + knob["height"] / 2)
    mouse.down()
    mouse.move(track["x"] + track["width"], knob["y"] + knob["height"] / 2, steps=8)
    mouse.up()


def test_the_ring_player_follows_keyboard_mouse_and_play(widget):
    player = widget("notebooks/05_ring_all_reduce.ipynb")
    knob = player.locator(".noUi-handle")
    first = picture(player)
    second = changes(player, lambda: knob.press("ArrowRight"))
    assert changes(player, lambda: knob.press("ArrowLeft")) == first
    changes(player, lambda: drag(player, player.locator(".noUi-target")))
    while picture(player) != first:
        changes(player, lambda: knob.press("ArrowLeft"))
    assert changes(player, lambda: player.locator("button").first.click()) == second


def test_the_sampler_follows_keyboard_mouse_and_its_boxes(widget):
    sampler = widget("notebooks/07_distributed_sampler.ipynb")
    sliders = sampler.locator(".noUi-target")
    for slider in sliders.all():
        changes(sampler, lambda slider=slider: slider.locator(".noUi-handle").press("ArrowRight"))
    changes(sampler, lambda: drag(sampler, sliders.first))
    boxes = sampler.locator("input[type=checkbox]")
    assert boxes.count() > 0
    for box in boxes.all():
        changes(sampler, box.click)
        changes(sampler, lambda box=box: box.press("Space"))


def test_the_widgets_are_all_tested():
    """A lesson that gains a widget gains a test here."""
    with_widget = [
        path.stem
        for path in sorted((lab.ROOT / "notebooks" / "source").glob("[0-9]*.py"))
        if any(name in path.read_text() for name in ("views.ring(", "views.sampler("))
    ]
    assert with_widget == ["05_ring_all_reduce", "07_distributed_sampler"]
