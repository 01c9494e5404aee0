"""What came back from the workers, as plain frozen data, and the error that carries it.

Nothing here starts a process, draws, or touches torch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from ddp_lessons.placement import Placement

HEAD_LINES, TAIL_LINES = 12, 6  # of each rank's output, in a summary


@dataclass(frozen=True)
class Record:
    """One call of `record(name, **values)` in a script.

    `time` is in seconds on the machine's monotonic clock: comparable between the ranks of one
    machine, meaningless as a date. `line` is where in the script it was called. Tensors arrive as
    nested lists.
    """

    rank: int
    name: str
    time: float
    line: int
    values: Mapping[str, Any]

    def __repr__(self) -> str:
        told = "".join(f", {name}={short(value)}" for name, value in self.values.items())
        return f"Record(rank {self.rank}, line {self.line}, {self.name!r}{told})"


TO_ROOT = ("reduce", "gather", "gather_object")  # collectives whose root is a dst


@dataclass(frozen=True)
class Call:
    """One communication call that a rank's script made: dist.all_reduce(x), say.

    `group` are the global ranks of its process group, and `index` says how many such calls the rank
    had made in that group before (for send and recv: with that peer and tag). `root` is the global
    rank of src or dst in a collective, `peer` the other side of a send or recv (None: a recv from
    any rank that has not returned). `shape`, `dtype` and `bytes` are those of the tensor that was
    passed in, of the output in scatter, recv and reduce_scatter. `file` and `line` are the
    reader's. Times are monotonic seconds, None for what has not happened: `called`, `returned`,
    and for a Work that was waited for `waited` and `done`. On NCCL `returned` means enqueued.
    """

    rank: int
    seq: int
    op: str
    group: tuple[int, ...]
    index: int
    file: str
    line: int
    called: float
    returned: float | None = None
    root: int | None = None
    peer: int | None = None
    tag: int = 0
    reduce_op: str | None = None
    shape: tuple[int, ...] = ()
    dtype: str | None = None
    bytes: int = 0
    detail: str = ""
    group_name: str = ""
    raised: bool = False
    asynchronous: bool = False
    batched: bool = False
    waited: float | None = None
    done: float | None = None
    wait_file: str | None = None
    wait_line: int | None = None

    @property
    def end(self) -> float | None:
        """When the rank was free again: done for a Work that was waited for, else returned."""
        return self.done if self.waited else self.returned

    def __repr__(self) -> str:
        return f"Call(rank {self.rank}, line {self.line}, {self.told})"

    @property
    def told(self) -> str:
        """What was called with what, as text: "all_reduce SUM of float32 [4]"."""
        parts = [self.op]
        if self.reduce_op:
            parts.append(self.reduce_op)
        if self.dtype:
            parts.append(f"of {self.dtype} {list(self.shape)}")
        if self.root is not None:
            to = "to" if self.op in TO_ROOT else "from"
            parts.append(f"{to} rank {self.root}")
        if "send" in self.op:
            parts.append(f"to rank {self.peer}")
        if "recv" in self.op:
            parts.append("from any rank" if self.peer is None else f"from rank {self.peer}")
        if self.tag:
            parts.append(f"with tag {self.tag}")
        return " ".join(parts)


@dataclass(frozen=True)
class Meeting:
    """The calls that meet each other: at most one of each member, in rank order; `missing` are the
    members that have not made theirs. `differs` is what does not agree, "" if all that came does.
    """

    calls: tuple[Call, ...]
    missing: tuple[int, ...] = ()
    differs: str = ""

    @property
    def last(self) -> float:
        """When the last of these calls was made, in monotonic seconds."""
        return max(call.called for call in self.calls)


@dataclass(frozen=True)
class Frame:
    """One level of a rank's Python stack. `own`: in a file of the reader's, not in torch."""

    file: str
    line: int
    function: str
    source: str
    own: bool


@dataclass(frozen=True)
class Failure:
    """How a rank's script ended when it did not reach its last line.

    `line` is the last line of the reader's own code in the traceback (None if unknown), `file`
    that file's name, `frames` the reader's own frames, outermost first, each as (file, line,
    function, source line), `chain` the exceptions that led to this one, as text, newest
    first.
    """

    kind: str  # the exception's class name, or "exit"
    message: str
    file: str | None = None
    line: int | None = None
    frames: tuple[tuple[str, int, str, str], ...] = ()
    chain: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rank:
    """What one worker process did.

    `exitcode` follows the standard library: negative for a signal, None if the rank had to be
    stopped. `finished` is true only if the rank itself wrote that its script came to its end.
    `node` is the machine's number and `local_rank` the rank's number on it. `started`, `called`,
    `joined` and `ended` are monotonic seconds (None: it never happened); `called` and `joined` are
    when init_process_group was entered and when it returned; `elsewhere` is the address given to
    it, if that was not the one that launch() had prepared, and `expected` how many ranks it waits
    for. `calls` are the communication calls
    of its script; `stack` is where the rank stood when it was stopped at the time limit, outermost
    first: the reader's own frames and torch's.
    """

    rank: int
    device: str
    pid: int | None
    parent: int | None
    exitcode: int | None
    stdout: str
    stderr: str
    records: tuple[Record, ...]
    finished: bool
    failure: Failure | None = None
    node: int = 0
    local_rank: int = 0
    started: float | None = None
    called: float | None = None
    elsewhere: str | None = None
    expected: int | None = None
    joined: float | None = None
    ended: float | None = None
    calls: Sequence[Call] = ()
    stack: tuple[Frame, ...] = ()

    def __repr__(self) -> str:
        end = "ok" if self.finished and self.exitcode == 0 else "failed"
        printed = len(self.stdout.splitlines())
        return f"Rank({self.rank}, {end}, records: {len(self.records)}, lines printed: {printed})"


@dataclass(frozen=True)
class Run:
    """One launch, with a `Rank` for each rank, in rank order.

    `run[2]` is rank 2, `len(run)` the world size. `seconds` is wall time from the call of launch()
    to the last rank's end. `source` is the script's text as it was launched. `log` is the folder
    with each rank's whole output; it lasts as long as this Python process. `attempt` counts
    restarts, from 0. `mismatches` are the communication calls that met each other and did not fit
    together; if all ranks came to their end, also those that somebody never made. `report` says
    what went wrong, "" if nothing did.
    """

    script: str
    world_size: int
    placement: Placement
    seconds: float
    ranks: tuple[Rank, ...]
    log: Path
    source: str = ""
    attempt: int = 0
    mismatches: tuple[Meeting, ...] = ()
    report: str = ""

    @property
    def ok(self) -> bool:
        """True only if every rank wrote its own end marker and left with exit code 0, and all
        their communication calls fit together."""
        ended = all(rank.finished and rank.exitcode == 0 for rank in self.ranks)
        return ended and not self.mismatches

    @property
    def records(self) -> tuple[Record, ...]:
        """Every record of every rank, by rank, then in the order in which that rank made them."""
        return tuple(record for rank in self.ranks for record in rank.records)

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """Every communication call of every rank, by rank, then in the order of the calls."""
        return tuple(call for rank in self.ranks for call in rank.calls)

    @property
    def joined(self) -> list[float | None]:
        """When each rank's init_process_group returned: monotonic seconds, in rank order."""
        return [rank.joined for rank in self.ranks]

    def values(self, name: str) -> list[Any]:
        """Each rank's last recorded value of `name`, in rank order; None where a rank has none.

        Raises KeyError, with the names there are, if no rank recorded it.
        """
        found = [[r.values[name] for r in rank.records if name in r.values] for rank in self.ranks]
        if not any(found):
            names = sorted({key for record in self.records for key in record.values})
            raise KeyError(f"no rank recorded {name!r}; recorded: {', '.join(names) or 'nothing'}")
        return [values[-1] if values else None for values in found]

    def __getitem__(self, rank: int) -> Rank:
        if rank not in range(len(self.ranks)):
            raise say(IndexError(f"this run has ranks 0 to {len(self.ranks) - 1}, not {rank!r}"))
        return self.ranks[rank]

    def __iter__(self) -> Iterator[Rank]:
        return iter(self.ranks)

    def __len__(self) -> int:
        return len(self.ranks)

    def __repr__(self) -> str:
        return summary(self)


class WorkerError(RuntimeError):
    """At least one rank failed, left early or was still running at the time limit.

    `str(error)` is the report; `error.run` is the Run with everything that did come back;
    `error.rank` is the rank that failed first, or None if no single rank can be named.
    """

    def __init__(self, report: str, run: Run, rank: int | None):
        super().__init__(report)
        self.run = run
        self.rank = rank

    def __reduce__(self) -> tuple:
        return type(self), (str(self), self.run, self.rank)  # a pool of processes hands errors on

    def _render_traceback_(self) -> list[str]:
        # IPython asks for this: the launcher's own frames would only hide the report. What was
        # printed is no part of str(error): how far the other ranks came is a matter of time.
        return headed("WorkerError", str(self), last_printed(self.run))


class ScriptError(ValueError):
    """The script cannot be compiled. No SyntaxError of its own: a notebook shows that one with all
    the frames that led to it."""


def say(error: BaseException, more: Sequence[str] = ()) -> BaseException:
    """Return `error`, so marked that a notebook shows its message and `more`, no frames of ours."""
    error._render_traceback_ = partial(headed, type(error).__name__, str(error), tuple(more))
    return error


def headed(kind: str, message: str, more: Sequence[str]) -> list[str]:
    return [f"\x1b[1m{kind}\x1b[0m: {message}", *more]


def last_printed(run: Run, most: int = 5, ranks: int = 8) -> list[str]:
    """The last lines that each of the first ranks printed, under a line that says so."""
    lines = [
        f"rank {rank.rank} | {line}"
        for rank in run.ranks[:ranks]
        for line in folded(rank.stdout, 0, most)
    ]
    return ["Printed last (all of it: run.log of the error's run):", *lines] if lines else []


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


def summary(run: Run) -> str:
    """The run as text, the same on every machine: no times, process ids, devices or paths."""
    plural = "rank" if run.world_size == 1 else "ranks"
    parts = [f"{run.script} on {run.world_size} {plural}: {'ok' if run.ok else 'failed'}"]
    table = columns(run)
    if table:
        head = ["rank", *(name for name, _ in table)]
        rows = [[str(r.rank), *(cells[r.rank] for _, cells in table)] for r in run.ranks]
        widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
        parts += [
            "  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
            for row in [head, *few(rows)]
        ]
    for rank in run.ranks:
        parts += [f"rank {rank.rank} | {line}".rstrip() for line in folded(rank.stdout)]
    return "\n".join(parts)
