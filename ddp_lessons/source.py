"""show(): a script's source, with the lines that matter lit."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from ddp_lessons import scripts
from ddp_lessons.run import say

AROUND = 2  # lines of context about a lit line
SMALL = 2  # lines that are not worth a fold
MOST = 0.7  # of the lines: with more than that in the excerpt, all are printed


@dataclass(frozen=True)
class Source:
    """A script's lines, which of them are lit (numbers from 1), and the sentence that says why.

    `shown` are the numbers of the lines to print; gaps between them are counted, not printed.
    """

    name: str
    lines: tuple[str, ...]
    lit: frozenset[int]
    shown: tuple[int, ...]
    caption: str

    def __repr__(self) -> str:
        rows = [self.caption]
        width = len(str(len(self.lines)))
        for number, gap in numbered(self):
            if gap:
                rows.append(f"{'':{width + 2}} … {lines(gap)} …")
            if number:
                mark = ">" if number in self.lit else " "
                rows.append(f"{mark} {number:{width}} {self.lines[number - 1]}".rstrip())
        return "\n".join(rows)


def show(
    script: str | Path, *, since: str | Path | None = None, light: str | Sequence[str] = ()
) -> Source:
    """Show a script's source.

    since: another script; the lines that differ from it are lit.
    light: text, or several; the lines that contain it are lit and the rest is folded away.
    Raises FileNotFoundError for an unknown script and ValueError if no line contains `light`.
    """
    path = found(script)
    lines = tuple(path.read_text(encoding="utf-8").splitlines())
    everything = tuple(range(1, len(lines) + 1))
    if since is not None:
        old = found(since)
        lit = changed(old.read_text(encoding="utf-8").splitlines(), lines)
        caption = f"{path.name}: {len(lit)} of {len(lines)} lines differ from {old.name}"
        return Source(path.name, lines, lit, everything, caption)
    wanted = [light] if isinstance(light, str) else list(light)
    if not wanted:
        return Source(path.name, lines, frozenset(), everything, path.name)
    missing = [text for text in wanted if not any(text in line for line in lines)]
    if missing:
        raise say(ValueError(f"no line of {path.name} contains {missing[0]!r}"))
    lit = frozenset(n for n in everything if any(text in lines[n - 1] for text in wanted))
    shown = excerpt(lit, len(lines))
    numbers = ", ".join(str(n) for n in sorted(lit))
    return Source(
        path.name, lines, lit, shown, f"{path.name}, line{'' if len(lit) == 1 else 's'} {numbers}"
    )


def found(script: str | Path) -> Path:
    try:
        return scripts.find(script)
    except (OSError, TypeError) as error:
        raise say(error) from None


def excerpt(lit: Collection[int], count: int) -> tuple[int, ...]:
    """The numbers of the lines to print: the lit ones, what stands around them, and what would take
    as much room folded away as printed. All, if that is most of them."""
    near = {n for n in range(1, count + 1) if any(abs(n - mark) <= AROUND for mark in lit)}
    edges = [0, *sorted(near), count + 1]
    for before, after in zip(edges, edges[1:], strict=False):
        if after - before - 1 <= SMALL:
            near.update(range(before + 1, after))
    return tuple(range(1, count + 1)) if len(near) > MOST * count else tuple(sorted(near))


def lines(count: int) -> str:
    return f"{count} line{'' if count == 1 else 's'}"


def changed(old: Sequence[str], new: Sequence[str]) -> frozenset[int]:
    """The numbers, from 1, of the lines of `new` that are not in `old` at their place."""
    matcher = difflib.SequenceMatcher(None, list(old), list(new), autojunk=False)
    return frozenset(
        number + 1
        for tag, _, _, start, end in matcher.get_opcodes()
        if tag != "equal"
        for number in range(start, end)
        if new[number].strip()
    )


def numbered(source: Source) -> list[tuple[int | None, int]]:
    """What to print, in order: (line number, how many lines were left out just before it).

    The last entry is (None, n) if n lines are left out at the end.
    """
    rows: list[tuple[int | None, int]] = []
    before = 0
    for number in source.shown:
        rows.append((number, number - before - 1))
        before = number
    if before < len(source.lines):
        rows.append((None, len(source.lines) - before))
    return rows
