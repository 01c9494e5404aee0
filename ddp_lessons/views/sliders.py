"""A picture with a slider or a box for each of its settings, where somebody looks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ddp_lessons.views.moving import display_moving
from ddp_lessons.views.theme import Picture

if TYPE_CHECKING:
    from ipywidgets import VBox


@dataclass(frozen=True)
class Sliders:
    """A still picture, and one that `draw` makes anew, with all settings as keyword arguments.

    `settings` are the values to start from: a number for a slider, with its `limits`, or a truth
    value for a box. A cell that ends with it shows the still picture, and in a live front end with
    ipywidgets the other one. repr is the sentence of the still picture.
    """

    still: Picture
    draw: Callable[..., Picture]
    settings: Mapping[str, int | bool]
    limits: Mapping[str, tuple[int, int]]

    def __repr__(self) -> str:
        return repr(self.still)

    def _ipython_display_(self) -> None:
        display_moving(self.widget, self.still)

    def widget(self) -> VBox | None:
        """The picture that follows its sliders and boxes; None without ipywidgets."""
        try:
            import ipywidgets
        except ImportError:
            return None
        # Only what ipywidgets 7 and 8 both have.
        sliders, boxes = {}, {}
        for name, value in self.settings.items():
            if isinstance(value, bool):
                boxes[name] = ipywidgets.Checkbox(value=value, description=name, indent=False)
                boxes[name].layout.width, boxes[name].layout.margin = "auto", "2px 1.5em"
            else:
                low, high = self.limits[name]
                sliders[name] = ipywidgets.IntSlider(
                    value=value, min=low, max=high, description=name
                )
        controls = sliders | boxes
        draw = functools.lru_cache(64)(self.draw)
        screen = ipywidgets.HTML()

        def show(_: Any = None) -> None:
            screen.value = draw(**{name: knob.value for name, knob in controls.items()}).html()

        for knob in controls.values():
            knob.observe(show, names="value")
        show()
        rows = [ipywidgets.HBox(list(knobs.values())) for knobs in (sliders, boxes) if knobs]
        return ipywidgets.VBox([*rows, screen])
