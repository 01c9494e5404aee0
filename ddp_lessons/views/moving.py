"""Put a widget on the page, with a still picture for whoever cannot see it move."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ddp_lessons.page import live_page
from ddp_lessons.views.theme import Picture

if TYPE_CHECKING:
    from ipywidgets import VBox

WIDGET = "application/vnd.jupyter.widget-view+json"
FOLDED = "<details><summary>still picture (run the cell to see it move)</summary>{}</details>"


def display_moving(widget: Callable[[], VBox | None], still: Picture) -> None:
    """Show `widget()` in a live front end; elsewhere, and where it is None, `still` alone.

    A front end that knows no widgets shows the still picture in the same place. Below stands the
    still one, folded, for a page that is saved without the state of its widgets.
    """
    from IPython.display import display

    if live_page() is None or (box := widget()) is None:
        display(still)
        return
    # What ipywidgets 7 and 8 send themselves, but for the text, which would be the box's repr.
    view = {"version_major": 2, "version_minor": 0, "model_id": box.model_id}
    told = {"text/plain": repr(still), "text/html": still.html()}
    display({WIDGET: view, **told}, raw=True)
    display({**told, "text/html": FOLDED.format(still.html())}, raw=True)
