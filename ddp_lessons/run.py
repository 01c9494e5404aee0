"""What came back from the workers, as plain frozen data, and the error that carries it.

Nothing here starts a process, draws, or touches torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from ddp_lessons.placement import Placement
from ddp_lessons.text import last_printed, short, summary, wrapped


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
    members that have not made theirs. `differs` is what does not agree, "" if all that came does;
    `made` is how many calls each of the missing has made in that group instead.
    """

    calls: tuple[Call, ...]
    missing: tuple[int, ...] = ()
    differs: str = ""
    made: tuple[int, ...] = ()

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
    first, `time` when it was raised, in monotonic seconds.
    """

    kind: str  # the exception's class name, or "exit"
    message: str
    file: str | None = None
    line: int | None = None
    frames: tuple[tuple[str, int, str, str], ...] = ()
    chain: tuple[str, ...] = ()
    time: float | None = None


@dataclass(frozen=True)
class Process:
    """A process above a rank: its id and the beginning of its command line."""

    pid: int
    command: str


@dataclass(frozen=True)
class Starter:
    """The script's own process where the script starts its ranks itself (engine="python"). It is no
    rank. `came` are the numbers of the ranks that it started, `above` the processes above it, its
    parent first; the rest is as in Rank."""

    pid: int | None
    stdout: str
    stderr: str
    records: tuple[Record, ...]
    finished: bool
    failure: Failure | None
    came: tuple[int, ...]
    above: tuple[Process, ...] = ()


@dataclass(frozen=True)
class Rank:
    """What one worker process did.

    `exitcode` follows the standard library: negative for a signal, None if the rank had to be
    stopped. `finished` is true only if the rank itself wrote that its script came to its end.
    `node` is the machine's number and `local_rank` the rank's number on it. `started`, `ready`,
    `called`, `joined` and `ended` are monotonic seconds (None: it never happened); `ready` is when
    the rank had come to its script, `called` and `joined` are when init_process_group was entered
    and when it returned; `elsewhere` is the address given to it, if that was not the one that
    launch() had prepared, and `expected` how many ranks it waits
    for. `calls` are the communication calls of its script, `forwards` counts its passes through the
    forward of DDP; `stack` is where the rank stood when it was stopped at the time limit, or where
    its script failed, outermost first: the reader's own frames and torch's. `above` are the
    processes above it, its parent first, up to the one that called launch() if it is among them;
    empty where the system does not tell.
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
    ready: float | None = None
    called: float | None = None
    elsewhere: str | None = None
    expected: int | None = None
    joined: float | None = None
    ended: float | None = None
    calls: Sequence[Call] = ()
    forwards: int = 0
    stack: tuple[Frame, ...] = ()
    above: tuple[Process, ...] = ()

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
    restarts, from 0, and `earlier` has the ranks of each attempt before. `starter` is the script's
    own process under engine="python", None under the others. `owner` is the id of the process that
    called launch(). `mismatches` are the communication calls that met each other and did not fit
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
    earlier: tuple[tuple[Rank, ...], ...] = ()
    starter: Starter | None = None
    owner: int | None = None

    @property
    def ok(self) -> bool:
        """True only if every rank wrote its own end marker and left with exit code 0, and all
        their communication calls fit together. A script that starts its ranks itself has to come to
        its end too, and to start as many as launch() was told of."""
        ended = all(rank.finished and rank.exitcode == 0 for rank in self.ranks)
        one = self.starter
        started = not one or (one.finished and one.came == tuple(range(len(self))))
        return ended and started and not self.mismatches

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
    # JupyterLab breaks a long line of a traceback in the middle of a word.
    text = wrapped(f"{kind}: {message}")
    return [f"\x1b[1m{kind}\x1b[0m{text.removeprefix(kind)}", *more]
