"""In a rank, during a check: a network that is as late as torch allows. In the parent: what one
rank saw of it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ddp_lessons.checks import values
from ddp_lessons.checks.exercise import Fault


def when_waited_for(parameters: Sequence[Any], events: list[list[Any]]) -> None:
    """From now on, all-reduces of this process leave their result where it belongs at the moment
    when somebody waits for it, and not before.

    torch promises a result only after the wait. On one computer it often comes earlier, so that an
    answer which forgets to wait would be right by luck. Notes each start and wait in `events`, and
    when a tensor was written to in between.
    """
    import torch
    import torch.distributed as dist

    pending: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # by Work
    gates: list[Any] = []
    inner = dist.ProcessGroup.allreduce
    future_class = torch._C.Future
    get_future, wait_for_future = dist.Work.get_future, future_class.wait
    is_completed = dist.Work.is_completed

    def kind(tensor: Any) -> list[Any]:
        for number, p in enumerate(parameters):
            if tensor.data_ptr() == p.data_ptr():
                return ["parameter", number]
            if p.grad is not None and tensor.data_ptr() == p.grad.data_ptr():
                return ["gradient", number]
        return ["other", -1]

    def all_reduce(group: Any, tensors: Any, *args: Any, **kwargs: Any) -> Any:
        places = [one.detach() for one in (tensors if isinstance(tensors, list) else [tensors])]
        before = [one.clone() for one in places]
        results = [one.clone() for one in places]
        number = len(events)
        events.append(["call", number, *kind(places[0])])
        work = inner(group, results, *args, **kwargs)
        delivered = []

        def deliver() -> None:
            step = max(n for n, event in enumerate(events) if event[0] == "backward")
            if ["waited", number] not in events[step:]:  # a poll asks many times
                events.append(["waited", number])
            if delivered:
                return
            delivered.append(True)
            for place, was, result in zip(places, before, results, strict=True):
                if not torch.equal(place, was):
                    events.append(["written", number, was.tolist(), place.tolist()])
                place.copy_(result)

        pending[work] = deliver, tensors
        return work

    def delivering(wait: Callable) -> Callable:
        def waited(work: Any, *args: Any, **kwargs: Any) -> Any:
            result = wait(work, *args, **kwargs)
            if work in pending:
                pending[work][0]()
            return result

        return waited

    def completed(work: Any) -> bool:
        done = is_completed(work)
        if done and work in pending:
            pending[work][0]()
        return done

    def future_of(work: Any) -> Any:
        future = get_future(work)
        if work not in pending:
            return future
        (deliver, tensors), gate = pending[work], torch.futures.Future()
        gates.append(gate)

        def both_done(_: Any) -> Any:
            deliver()
            return tensors

        return torch.futures.collect_all([future, gate]).then(both_done)

    def future_waited(future: Any) -> Any:
        while gates:
            gates.pop().set_result(None)
        return wait_for_future(future)

    dist.ProcessGroup.allreduce = all_reduce
    dist.Work.wait = delivering(dist.Work.wait)
    dist.Work.synchronize = delivering(dist.Work.synchronize)
    dist.Work.is_completed = completed
    dist.Work.get_future = future_of
    future_class.wait = future_waited


class Seen:
    """What one rank saw in one step, in order: gradients that got ready, calls, waits."""

    def __init__(self, events: Sequence[Any], step: int, names: Sequence[str], where: str):
        at = events.index(["backward", step])
        self.every = events
        self.events = events[at : events.index(["end", step])]
        self.names, self.where = names, where
        self.finish = self.events.index(["finish", step])
        self.ready = [n for n, event in enumerate(self.events) if event[0] == "ready"]
        self.calls = [n for n, event in enumerate(self.events) if event[0] == "call"]
        self.works = {self.events[n][1]: self.events[n] for n in self.calls}

    def count(self) -> str:
        return f"{len(self.ready)} gradients were ready, and {len(self.calls)} all-reduces made"

    def waits(self) -> Iterator[Fault]:
        if len(self.calls) > len(self.ready):
            yield Fault("overlap", self.where + self.count(), "too_many")
            return
        for call in self.works.values():
            if call[2] == "parameter":
                told = f"{self.where}all_reduce got {self.names[call[3]]} itself, not its gradient"
                yield Fault("result", told, "parameter")
                return
        for event in self.events:
            if event[0] == "waited" and self.is_old(event[1]):
                told = f"{self.where}finish() waited for an all-reduce of an earlier step"
                yield Fault("waits", told, "from_before")
                return
            if event[0] == "written":
                name = self.named(self.works[event[1]])
                told = f"{self.where}{name} was {values.told(event[2])} when its all-reduce began, "
                told += f"and {values.told(event[3])} before it was waited for"
                yield Fault("waits", told, "written_early")
                return
        waited = {event[1] for event in self.events if event[0] == "waited"}
        open_ones = [self.named(call) for work, call in self.works.items() if work not in waited]
        if open_ones:
            told = f"{self.where}{open_ones[0]} was still on its way when finish() returned"
            yield Fault("waits", told, "no_wait")

    def is_old(self, work: int) -> bool:
        """Whether this step has a later all-reduce of the same tensor. An earlier step's, of one
        that took no part in this step, is over, and may stay where it was kept."""
        fresh = [call[2:] for call in self.works.values()]
        return work not in self.works and self.every[work][2:] in fresh

    def named(self, call: Sequence[Any]) -> str:
        if call[2] == "other":
            return "the tensor that was all-reduced"
        return f"the gradient of {self.names[call[3]]}"

    def overlap(self, asynchronous: Sequence[bool]) -> Iterator[Fault]:
        late = [n for n in self.calls if n > self.finish]
        if late:
            told = f"{len(late)} of {len(self.calls)} all-reduces began after the backward"
            yield Fault("overlap", self.where + told, "after_backward")
            return
        waits = [n for n, event in enumerate(self.events) if event[0] == "waited"]
        if waits and self.calls and waits[0] < self.calls[-1]:
            told = f"{self.named(self.events[self.calls[0]])} was waited for before "
            told += f"the all-reduce of {self.names[self.events[self.calls[-1]][3]]} had begun"
            sync = "" if all(asynchronous) else "; the call was made without async_op=True"
            yield Fault("overlap", self.where + told + sync, "waits_early")
            return
        for call, following in zip(self.calls, self.ready[1:], strict=False):
            if call > following:
                first, then = (self.names[self.events[n][1]] for n in (self.ready[0], following))
                told = f"the gradient of {then} was ready before the all-reduce for {first} began"
                yield Fault("overlap", self.where + told, "late_start")
                return
        if len(self.calls) < len(self.ready):
            yield Fault("overlap", self.where + self.count(), "late_start")
