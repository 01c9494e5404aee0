"""What came back from the workers as text: short values, folded output, the summary of a run.

The same on every machine: no times, process ids, devices or paths.
"""

from __future__ import annotations

import re
import signal
import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ddp_lessons.run import Rank, Run

HEAD_LINES, TAIL_LINES = 12, 6  # of each rank's output, in a summary


def last_printed(run: Run, most: int = 5, ranks: int = 8) -> list[str]:
    """The last lines that each of the first ranks printed, under a line that says so."""
    lines = [
        f"rank {rank.rank} | {line}"
        for rank in run.ranks[:ranks]
        for line in folded(rank.stdout, 0, most)
    ]
    return ["Printed last (all of it: the files in error.run.log):", *lines] if lines else []


def short(value: Any, width: int = 60) -> str:
    """One line for a value: floats with 4 digits, at most `width` characters."""
    if isinstance(value, bool) or value is None:
        text = str(value)
    elif isinstance(value, float):
        text = f"{value:.1f}" if value == int_or_none(value) else f"{value:.4g}"
    elif isinstance(value, list | tuple):
        # No more of a long list is written out than can be shown.
        text = "[" + ", ".join(short(item, width) for item in value[:width]) + "]"
    elif isinstance(value, dict):
        text = "{" + ", ".join(f"{k}: {short(v, width)}" for k, v in value.items()) + "}"
    else:
        text = printable(str(value).replace("\n", " "))
    return text if len(text) <= width else text[: width - 1] + "…"


def wrapped(text: str, width: int = 96) -> str:
    """Sentences in lines of at most `width` characters, each as far in as it began.

    What stands 4 or more spaces in is code, and stays as it is.
    """
    return "\n".join(
        line if len(line) <= width or line.startswith("    ") else _in_lines(line, width)
        for line in text.split("\n")
    )


def _in_lines(line: str, width: int) -> str:
    indent = line[: len(line) - len(line.lstrip(" "))]
    return textwrap.fill(
        line,
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        expand_tabs=False,
        replace_whitespace=False,
    )


def printable(text: str) -> str:
    """The text with control characters and the like spelt out: none may draw a table of its own."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def int_or_none(value: float) -> int | None:
    """The integer that a float of ordinary size stands for, else None."""
    return int(value) if abs(value) < 1e6 and value == int(value) else None


def columns(run: Run) -> list[tuple[str, list[str]]]:
    """What the ranks recorded, as (name, each rank's last value as text), in order of first use."""
    names = dict.fromkeys(key for record in run.records for key in record.values)
    most = {
        name: max(sum(name in r.values for r in rank.records) for rank in run.ranks)
        for name in names
    }
    heads = {name: "" if most[name] == 1 else f" (last of {most[name]})" for name in names}
    last = {
        (rank.rank, name): value
        for rank in run.ranks
        for record in rank.records
        for name, value in record.values.items()
    }
    told = {key: short(value) for key, value in last.items()}
    return [
        (printable(name) + heads[name], [told.get((r.rank, name), "") for r in run.ranks])
        for name in names
    ]


def left_out(lines: int, size: int) -> str:
    """The line that stands, in a stdout or stderr, for the middle of one too long to carry."""
    return f"… {lines:,} lines left out, {size:,} bytes: the whole text is in run.log …"


def lines_in(line: str) -> int:
    """How many lines of the whole text this line of a carried one stands for."""
    marker = re.match(r"… (\d[\d,]*) lines left out, ", line)
    return int(marker[1].replace(",", "")) if marker else 1


def folded(text: str, head: int = HEAD_LINES, tail: int = TAIL_LINES) -> list[str]:
    """The lines of `text`; of a long one the ends, and between them how many lines are hidden."""
    lines = [line if len(line) <= 500 else line[:500] + "…" for line in text.splitlines()]
    if len(lines) <= head + tail + 1:
        return lines
    hidden = sum(lines_in(line) for line in lines[head:-tail])
    return [*lines[:head], f"… {hidden:,} lines hidden …", *lines[-tail:]]


def few(rows: list[list[str]], most: int = 12, head: int = 4, tail: int = 2) -> list[list[str]]:
    """The rows; of more than `most` the ends, and between them a row that counts the others."""
    if len(rows) <= most:
        return rows
    between = rows[head:-tail]
    alike = all(row[1:] == rows[0][1:] for row in between)
    note = f"… {len(between)} {'ranks alike' if alike else 'more ranks'} …"
    return [*rows[:head], [note] + [""] * (len(rows[0]) - 1), *rows[-tail:]]


def ending(rank: Rank) -> str:
    """How a rank ended, in a few words."""
    if rank.finished and rank.exitcode == 0:
        return "end of script"
    if rank.failure:
        where = f", line {rank.failure.line}" if rank.failure.line else ""
        return f"{rank.failure.kind}{where}"
    if rank.exitcode is None:
        return "stopped"
    if rank.exitcode < 0 and -rank.exitcode in set(signal.Signals):
        return f"killed by {signal.Signals(-rank.exitcode).name}"
    return f"exit code {rank.exitcode}"


def summary(run: Run) -> str:
    """The run as text, the same on every machine: no times, process ids, devices or paths. What
    went wrong comes first, then what was recorded, then what was printed."""
    plural = "rank" if run.world_size == 1 else "ranks"
    parts = [f"{run.script} on {run.world_size} {plural}: {'ok' if run.ok else 'failed'}"]
    parts += run.report.splitlines()
    table = columns(run)
    if table:
        head = ["rank", *(name for name, _ in table)]
        rows = [[str(r.rank), *(cells[r.rank] for _, cells in table)] for r in run.ranks]
        widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
        parts += [
            "  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
            for row in [head, *few(rows)]
        ]
    if run.starter:
        parts += [f"script | {line}".rstrip() for line in folded(run.starter.stdout)]
    for rank in run.ranks:
        parts += [f"rank {rank.rank} | {line}".rstrip() for line in folded(rank.stdout)]
    return "\n".join(parts)
