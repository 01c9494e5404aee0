"""A player: pictures one after the other, by a Play button and a slider, where somebody looks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ddp_lessons.views.moving import display_moving
from ddp_lessons.views.theme import Picture

if TYPE_CHECKING:
    from ipywidgets import VBox

PAUSE = 1500  # milliseconds between two pictures while it plays


@dataclass(frozen=True)
class Player:
    """A still picture, and the frames of a moving one, each drawn when it is first looked at.

    A cell that ends with it shows the still picture, and in a live front end with ipywidgets the
    moving one. repr is the sentence of the still picture.
    """

    still: Picture
    frames: Sequence[Callable[[], Picture]]

    def __repr__(self) -> str:
        return repr(self.still)

    def _ipython_display_(self) -> None:
        display_moving(self.widget, self.still)

    def widget(self) -> VBox | None:
        """The moving picture, with its Play button and slider; None without ipywidgets."""
        try:
            import ipywidgets
        except ImportError:
            return None
        # Only what ipywidgets 7 and 8 both have.
        frames = [functools.cache(frame) for frame in self.frames]
        last = len(frames) - 1
        play = ipywidgets.Play(value=0, min=0, max=last, step=1, interval=PAUSE)
        slider = ipywidgets.IntSlider(value=0, min=0, max=last, step=1, description="moment")
        screen = ipywidgets.HTML(value=frames[0]().html())

        def turn(change: dict[str, Any]) -> None:
            screen.value = frames[change["new"]]().html()

        slider.observe(turn, names="value")
        # The kernel's own link would send every value back, against a slider that is moving.
        ipywidgets.jslink((play, "value"), (slider, "value"))
        return ipywidgets.VBox([ipywidgets.HBox([play, slider]), screen])
