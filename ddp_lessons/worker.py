"""What a script may import: process_group(), record() and trace().

Works under launch() and under bare `torchrun` alike.
"""

from __future__ import annotations

import json
import math
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

RECORDS = "DDP_LESSONS_RECORDS"  # the file that record() appends to; set by bootstrap
NUMBER_OF = "DDP_LESSONS_RANK"  # a rank's number, where no RANK tells it; set by own_ranks
RAISED = "_ddp_lessons_raised"  # on an exception: the monotonic time at which it left the block
LIMIT = 1_000_000  # bytes of one record
COMMUNICATION = ("gloo:", "nccl:")  # how the names of a backend's own work begin


@contextmanager
def process_group() -> Iterator[torch.device]:
    """Join the process group, yield this rank's device, and leave the group at the end.

    As many visible GPUs as local ranks: NCCL, device cuda:LOCAL_RANK. Otherwise, or where torch was
    built without NCCL, gloo on the CPU.
    Reads the environment that torchrun and launch() set; raises KeyError where they did not.
    """
    import torch
    import torch.distributed as dist

    local_rank = int(os.environ["LOCAL_RANK"])
    enough = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
    if enough and dist.is_nccl_available():
        device = torch.device("cuda", local_rank)
        torch.cuda.set_device(device)
        dist.init_process_group("nccl", device_id=device)
    else:
        device = torch.device("cpu")
        dist.init_process_group("gloo")
    try:
        yield device
    except BaseException as error:
        setattr(error, RAISED, time.monotonic())  # leaving takes a while: who failed first?
        if device.type != "cuda":  # on NCCL, leaving would wait for ranks that wait for this one
            dist.destroy_process_group()
        raise
    dist.destroy_process_group()


def record(name: str, /, **values: Any) -> None:
    """Append one line (rank, name, monotonic time in seconds, the caller's line number, values) to
    this rank's records.

    Values are numbers, text, lists, dicts or tensors (any shape or device; they become nested
    lists). Under bare torchrun, where nobody collects records, the line is printed. Raises
    ValueError for a record over 1 MB and TypeError for a value that has no JSON form.
    """
    _write(name, time.monotonic(), sys._getframe(1).f_lineno, values)


def _write(name: str, when: float, line_number: int, values: dict[str, Any]) -> None:
    head = {
        "rank": int(os.environ.get("RANK", os.environ.get(NUMBER_OF, 0))),
        "name": name,
        "time": when,
        "line": line_number,
    }
    size = sum(v.numel() for v in values.values() if hasattr(v, "numel"))
    line = "" if size > LIMIT else json.dumps({**head, "values": values}, default=_plain)
    if not 0 < len(line) <= LIMIT:
        raise ValueError(
            f"record({name!r}): over 1 MB. Record a summary (a sum, a norm, a slice), "
            "not the whole tensor."
        )
    path = os.environ.get(RECORDS)
    if path is None:
        print(line + "\n", end="", flush=True)  # in one write: ranks share the terminal
        return
    with open(path, "a", encoding="utf-8") as file:
        file.write(line + "\n")


def _plain(value: Any) -> Any:
    """The JSON form of a tensor, array or number that json does not know."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(
        f"record() takes numbers, text, lists, dicts and tensors, not {type(value).__name__}"
    )


@dataclass
class Span:
    """A named stretch of time, begun when it was made. It ends with its `with` block, or at the
    first end(), which any thread may call. Times are monotonic seconds; None while it lasts."""

    name: str
    values: dict[str, Any]
    line: int
    start: float = field(default_factory=time.monotonic)
    stop: float | None = None
    thread: int = field(default_factory=threading.get_ident)

    def end(self) -> None:
        if self.stop is None:
            self.stop = time.monotonic()

    def __enter__(self) -> Span:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


class _Trace:
    """The block of one trace(): calling it begins a span."""

    def __init__(self, events: tuple[str, ...], line: int):
        self.events, self.line = events, line
        self.spans: list[Span] = []
        self.profiler: Any = None

    def __call__(self, name: str, /, **values: Any) -> Span:
        made = Span(name, values, sys._getframe(1).f_lineno)
        self.spans.append(made)
        return made

    def __enter__(self) -> _Trace:
        import torch
        from torch.profiler import ProfilerActivity, profile

        if torch.autograd._profiler_enabled():
            raise RuntimeError("trace() cannot begin: a profiler is at work already")
        kinds = [ProfilerActivity.CPU]
        if torch.cuda.is_initialized():
            kinds.append(ProfilerActivity.CUDA)
        # Read when a process profiles for the first time: two lines on stderr for each block,
        # "USDT:... profiler_start" and "profiler_stop", come at any level below.
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")
        self.profiler = profile(activities=kinds, record_shapes=True)
        self.profiler.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.profiler.__exit__(*error)
        # Threads race: in the order of time, two runs of one script would differ.
        here = threading.get_ident()
        self.spans.sort(key=lambda one: one.thread != here)
        for one in self.spans:
            times = {"times": [one.start, one.stop]}
            _write("span", one.start, one.line, {"span": one.name, **one.values, **times})
        found = [self._event(one) for one in self._kept()]
        for values in sorted(found, key=_place):
            values.pop("place")
            _write("event", values["times"][0], self.line, values)

    def _kept(self) -> list[Any]:
        every = self.profiler.profiler.kineto_results.events()
        return [one for one in every if one.name().startswith(self.events)]

    def _event(self, event: Any) -> dict[str, Any]:
        # The profiler tells the time of day.
        start = (event.start_ns() - _since_1970_of_zero()) / 1e9
        sizes = [math.prod(shape) for shape in event.shapes() if shape]
        around = [n for n, s in enumerate(self.spans) if s.start <= start <= (s.stop or math.inf)]
        place = max(around, key=lambda n: self.spans[n].start, default=None)
        return {
            "event": event.name(),
            "during": None if place is None else self.spans[place].name,
            "numbers": sum(sizes),
            "times": [start, start + event.duration_ns() / 1e9],
            "place": -1 if place is None else place,
        }


def _place(event: dict[str, Any]) -> tuple[int, str, int]:
    return event["place"], event["event"], -event["numbers"]


def _since_1970_of_zero() -> int:
    """The time of day, in nanoseconds since 1970, at which the monotonic clock stood at 0."""
    tries = []
    for _ in range(5):
        before = time.monotonic_ns()
        day = time.time_ns()
        after = time.monotonic_ns()
        tries.append((after - before, day - (before + after) // 2))
    return min(tries)[1]  # the one that was interrupted least


def trace(*events: str) -> _Trace:
    """Record the named spans of a block, and what torch's profiler saw in it.

        with trace() as span:
            with span("forward"):
                loss = model(inputs).sum()
            moment = span("all-reduce", bucket=0)  # begins here
            ...
            moment.end()  # on any thread

    When the block ends, also by an error, each span becomes a record "span": `span` (its name), the
    values that it was given, and `times`, its begin and end in monotonic seconds as in record(); an
    end of None is that of a span that never ended. Those that the thread of the block began come
    first, in their order. Each profiler event whose name begins with one of `events` becomes a
    record "event": `event` (its name), `during` (the span that had begun last when the event began,
    None outside of all), `numbers` (entries of its input tensors) and `times`. Without `events`
    those are what gloo or NCCL carried out, under the backend's own names, DDP's calls included.

    Spans are timed on the host: on a GPU they say when work was queued. The profiler sees the
    thread of the block, autograd's and the backend's, not a thread that the script started. It
    costs time, so what is traced is not what a step takes without it. Raises what record() raises,
    and RuntimeError inside another trace() or profiler. Sources: the documentation of
    torch.profiler; ProcessGroupGloo.cpp and ProcessGroupNCCL.cpp for the names.
    """
    return _Trace(events or COMMUNICATION, sys._getframe(1).f_lineno)
