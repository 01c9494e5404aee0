"""A training loop over micro-batches with DDP: what a rank did, in order, and what of the order is
wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ddp_lessons.checks.exercise import Fault

OTHER, TOGETHER = -1, -2  # what may go through a model that is no micro-batch


def watched(train: Callable, inner: Any, rate: float, batches: list[Any], k: int) -> dict[str, Any]:
    """In a rank: train with an answer, and note each forward, backward, all-reduce and step, in
    order."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    model = DistributedDataParallel(inner)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    events: list[list[Any]] = []
    gradients: list[list[Any]] = []
    through = []

    def number(given: Any) -> int:
        """Which micro-batch was passed; TOGETHER for more rows than one has, else OTHER."""
        if not isinstance(given, torch.Tensor):
            return OTHER
        same = (n for n, one in enumerate(batches) if torch.equal(given, one))
        return next(same, TOGETHER if given.dim() and len(given) > len(batches[0]) else OTHER)

    def forward(_: Any, args: Any) -> None:
        which = number(args[0] if args else None)
        events.append(["forward", which, model.require_backward_grad_sync])

    def backward(_: Any) -> None:
        events.append(["backward", model.require_backward_grad_sync])

    def counted(_, bucket):  # noqa: ANN001, ANN202  DDP refuses other annotations than its own
        events.append(["all-reduce"])
        dist.all_reduce(bucket.buffer())  # one that the ledger sees, at the line of the backward
        done = torch.futures.Future()
        done.set_result(bucket.buffer().div_(dist.get_world_size()))
        return done

    def step(*_: Any) -> None:
        events.append(["step"])
        gradients.append([None if p.grad is None else p.grad.clone() for p in inner.parameters()])

    inner.register_forward_pre_hook(forward)
    model.register_forward_pre_hook(lambda *_: through.append(True))
    inner.first.weight.register_post_accumulate_grad_hook(backward)
    model.register_comm_hook(None, counted)
    optimizer.register_step_post_hook(step)  # a closure does the work inside of the step
    told = train(model, optimizer, batches, k)
    return {"events": events, "gradients": gradients, "module": len(through), "told": told}


@dataclass(frozen=True)
class Seen:
    """What one rank did, in order; `calls` are all that the ledger has, DDP's all-reduces too."""

    where: str
    events: list[list[Any]]
    gradients: list[list[Any]]
    calls: list[str]

    @property
    def made(self) -> int:
        """How many all-reduces DDP made."""
        return sum(event[0] == "all-reduce" for event in self.events)

    @property
    def by_hand(self) -> list[str]:
        """The calls that DDP did not make."""
        of_ddp = [n for n, op in enumerate(self.calls) if op == "all_reduce"][: self.made]
        return [op for n, op in enumerate(self.calls) if n not in of_ddp]

    def walk(self, groups: Sequence[range], micro: int, through: int) -> Iterator[Fault]:
        """What is wrong with the order of forwards, backwards and steps."""
        passed = [event[1] for event in self.events if event[0] == "forward"]
        steps = sum(event[0] == "step" for event in self.events)
        if not passed:
            yield Fault("steps", f"{self.where}: no micro-batch went through the model", "no_work")
        elif min(passed) < 0:
            number = next(n for n, one in enumerate(passed) if one < 0)
            told = f"{self.where}: what went through the model in forward {number + 1} was not one "
            together = passed[number] == TOGETHER
            yield Fault("order", told + "of the micro-batches", "together" if together else "")
        elif not through and not self.by_hand:
            told = f"{self.where}: {len(passed)} forwards went through model.module, none through "
            yield Fault("count", told + "model", "module")
        elif not steps:
            yield Fault("steps", f"{self.where}: optimizer.step() was not called", "no_step")
        elif steps != len(groups):
            told = f"{self.where}: {steps} steps, should be {len(groups)}"
            lost = steps == len(groups) - 1 and len(groups[-1]) < len(groups[0])
            each = steps == micro > len(groups)
            mistake = "rest_lost" if lost else "step_each_time" if each else ""
            yield Fault("steps", told, mistake)
        elif passed != list(range(micro)):
            told = f"{self.where}: micro-batches {[n + 1 for n in passed]} went through the model"
            yield Fault("order", told, "order")
        else:
            yield from self._alternates(groups)

    def _alternates(self, groups: Sequence[range]) -> Iterator[Fault]:
        order = [event[0] for event in self.events if event[0] != "all-reduce"]
        want: list[str] = []
        for group in groups:
            want += ["forward", "backward"] * len(group) + ["step"]
        if order == want:
            return
        backwards = order.count("backward")
        told = f"{self.where}: {order.count('forward')} forwards, {backwards} backwards; in order: "
        told += " ".join(order)
        early = any(a == b == "forward" for a, b in zip(order, order[1:], strict=False))
        yield Fault("order", told, "one_backward" if early else "")

    def flags(self, step: int) -> tuple[list[bool], list[bool], int]:
        """Of one step: whether each forward and each backward was to synchronise, and how many
        all-reduces DDP made."""
        ends = [-1, *(n for n, event in enumerate(self.events) if event[0] == "step")]
        part = self.events[ends[step] + 1 : ends[step + 1]]
        forwards = [event[2] for event in part if event[0] == "forward"]
        backwards = [event[1] for event in part if event[0] == "backward"]
        return forwards, backwards, sum(event[0] == "all-reduce" for event in part)

    def held(self, step: int) -> str:
        """Which forwards of a step DDP was told to average after, for a reader."""
        forwards, _, made = self.flags(step)
        synced = [str(number) for number, flag in enumerate(forwards, 1) if flag]
        which = "none"
        if len(synced) == len(forwards):
            which = "all"
        elif synced:
            which = f"only micro-batch{'es' * (len(synced) > 1)} {' and '.join(synced)}"
        return f"forwards outside of no_sync: {which} (of {len(forwards)}); all-reduces: {made}"

    def unsynced(self, step: int) -> str:
        """What the gradient says if the last micro-batch was not averaged."""
        forwards, _, _ = self.flags(step)
        if forwards[-1] or self.by_hand:
            return ""
        if not any(forwards):
            return "never_synced"
        return "inverted" if all(forwards[:-1]) else "wrong_one"
