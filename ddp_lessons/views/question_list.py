"""The rich form of what questions() shows: the same head, entries and notes as the text."""

from __future__ import annotations

import re
from html import escape

from ddp_lessons.objectives.asking import Asked
from ddp_lessons.views.html import block


def asked(asked: Asked) -> str:
    """A numbered list of questions, and below each its choices or what was answered."""
    items = "".join(
        f"<li>{words(ask)}<ul>"
        + "".join(
            f'<li><span class="ddp-mark">{words(mark)}</span> {words(said)}</li>'
            for mark, said in below
        )
        + "</ul></li>"
        for ask, below in asked.entries
    )
    notes = "".join(f'<p class="ddp-first">{words(note)}</p>' for note in asked.notes)
    head = f'<p class="ddp-first"><strong>{words(asked.head)}</strong></p>'
    return block(f'{head}<ol class="ddp-asked">{items}</ol>{notes}')


def words(text: str) -> str:
    """Escaped text; what stands between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
