"""A run while it goes on, in a live front end: a line for each rank, and what the ranks print."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from html import escape
from pathlib import Path

from ddp_lessons.page import Page, live_page
from ddp_lessons.progress import Progress, Standing

PATIENCE = 1.0  # seconds: a run that is over by then is not drawn
PAUSE = 0.1  # seconds between two drawings, or ten times what the last one took
RANKS, FIRST = 8, 6  # so many ranks have a line each; of more, the first few have one
LINES = 12  # of output, shared by the ranks that have a line

_STYLE = (
    "margin:0;white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.45;"
    "color:var(--jp-content-font-color1,inherit);background:none;"
    "font-family:var(--jp-code-font-family,monospace);font-size:var(--jp-code-font-size,13px)"
)
_PRINTED = "margin-top:.4em;padding-top:.4em;border-top:1px solid var(--jp-border-color2,#c8ccd0)"


@contextlib.contextmanager
def shown(
    folder: Path, script: str, world_size: int, limit: str
) -> Iterator[list[Callable[[], None]]]:
    """Show the run in `folder` while the block lasts; yields what has to be called now and then.
    limit: how long it may take, in words.

    Nothing is drawn in the first second, or where nobody looks: under nbclient, nbval and plain
    Python. Nothing stays behind. What the ranks write to stderr is not shown.
    """
    page = live_page()
    if page is None:
        yield []
        return
    try:
        yield [_View(page, folder, script, world_size, limit).look]
    finally:
        try:
            page.take_away()
        except KeyboardInterrupt:  # a second Stop, before the page held it back
            page.take_away()
            raise


class _View:
    def __init__(self, page: Page, folder: Path, script: str, world_size: int, limit: str):
        self._page = page
        follow = followed(world_size)
        self._progress = Progress(folder, world_size, follow, max(1, LINES // follow))
        self._title = f"{script} on {world_size} rank{'' if world_size == 1 else 's'}"
        self._limit = limit
        self._began = time.monotonic()
        self._next = self._began + PATIENCE
        self._last = ""

    def look(self) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        ranks = self._progress.look()
        html = drawing(self._title, self._progress.attempt, now - self._began, self._limit, ranks)
        if html != self._last:
            self._page.draw(html)
            self._last = html
        self._next = now + max(PAUSE, 10 * (time.monotonic() - now))


def followed(world_size: int) -> int:
    """How many ranks have a line of their own."""
    return world_size if world_size <= RANKS else FIRST


def drawing(title: str, attempt: int, seconds: float, limit: str, ranks: Sequence[Standing]) -> str:
    """The run as HTML."""
    again = f", restarted {attempt} time{'' if attempt == 1 else 's'}" if attempt else ""
    head = f"{title}{again}: {int(seconds)} s, at most {limit}"
    few = followed(len(ranks))
    width = len(str(few - 1))
    rows = [f"rank {r:>{width}}  {line(rank)}" for r, rank in enumerate(ranks[:few])]
    if ranks[few:]:
        counts = Counter(stage(rank) for rank in ranks[few:])
        told = ", ".join(f"{count} {name}" for name, count in counts.items())
        rows.append(f"and {len(ranks) - few} more ranks: {told}")
    printed = [f"rank {r} | {text}" for r, rank in enumerate(ranks) for text in rank.printed]
    parts = [f'<div style="font-weight:600">{escape(head)}</div>', block(rows)]
    parts += [block(printed, _PRINTED)] if printed else []
    return f'<div class="ddp-live" style="{_STYLE}">{"".join(parts)}</div>'


def stage(rank: Standing) -> str:
    """A rank's state in a word or two."""
    ended = rank.stage in ("done", "failed")
    return "at work" if rank.step and not ended else rank.stage


def line(rank: Standing) -> str:
    """A rank's state, with its step if it has told one."""
    if not rank.step:
        return rank.stage
    return rank.step if stage(rank) == "at work" else f"{rank.stage}, {rank.step}"


def block(lines: Sequence[str], style: str = "") -> str:
    return f'<div style="{style}">{escape(chr(10).join(lines))}</div>'
