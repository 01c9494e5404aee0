"""The exercise of lesson 09."""

from __future__ import annotations

import copy
import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ddp_lessons.checks import micro_batches, values
from ddp_lessons.checks.exercise import Case, Exercise, Fault

RATE = 0.125


class Accumulate(Exercise):
    key = "09_ddp_contract/accumulate"
    minutes = 10
    names = ("train",)
    requirements = {
        "steps": "one optimizer step after each k micro-batches, and one for a shorter rest; their "
        "number is returned",
        "order": "every micro-batch goes through the model once, alone, in order, with a backward "
        "of its own",
        "gradient": "each step uses the mean over all micro-batches of its group and all ranks: "
        "the gradient of one process",
        "count": "each step makes one all-reduce on each rank",
    }
    mistakes = {
        "no_step": "Gradients that no optimizer.step() uses teach the model nothing. A step "
        "belongs after the last micro-batch of each group.",
        "step_each_time": "Accumulating means that several backwards add into .grad before one "
        "optimizer.step().",
        "rest_lost": "The last micro-batches are fewer than k. They are a group too, with a step "
        "of its own.",
        "together": "Micro-batches are there because one large batch does not fit into memory. "
        "Pass them one by one.",
        "one_backward": "A forward keeps what its backward will need. Memory is saved only if each "
        "micro-batch's backward runs before the next forward.",
        "order": "Go through the micro-batches once, from the first to the last.",
        "module": "A forward through model.module goes past DDP, and the backward averages "
        "nothing. Call the wrapper.",
        "never_synced": "Under no_sync DDP averages nothing. The last micro-batch of a group must "
        "go through DDP without no_sync, forward included. Its backward averages all that .grad "
        "holds by then.",
        "inverted": "no_sync belongs around all micro-batches of a group but the last. Here it is "
        "around the last.",
        "wrong_one": "Only the last micro-batch of a group may synchronise: what is added to .grad "
        "after that stays this rank's own.",
        "backward_only": "The forward decides whether the backward will average. Keep the forward "
        "inside no_sync, too.",
        "every_time": "Each backward averages, unless the forward ran under no_sync. All but the "
        "last of a group can do without.",
        "by_hand": "DDP averages in the backward of the last micro-batch. What you call yourself "
        "comes on top of that.",
        "sum": "This is the sum over the micro-batches. Each loss is a mean over one of them; the "
        "mean over all is the sum divided by their number.",
        "divided_by_k": "The last group has fewer than k micro-batches: divide by the number that "
        "it has.",
        "divided_by_all": "Divided by the number of all micro-batches. The mean of a step is over "
        "those of its own group.",
        "divided_again": "DDP has divided by the number of ranks already.",
        "emptied_inside": "The gradients were emptied between the first backward of a group and "
        "its step, and what they held is lost. Empty them once for each step.",
        "not_emptied": "backward() adds to what .grad holds. After a step it must be emptied.",
    }

    def cases(self, seed: int) -> Sequence[Case]:
        def case(n: int, micro: int, k: int, width: int = 2) -> Case:
            told = f"{n} {'rank' if n == 1 else 'ranks'}, {micro} micro-batches, k = {k}"
            return Case(told, n, {"seed": seed, "micro": micro, "k": k, "width": width})

        return [case(2, 9, 3, width=1), case(1, 3, 3), case(2, 7, 3), case(4, 2, 1), case(3, 5, 4)]

    def inputs(self, case: Case, rank: int) -> list[Any]:
        """This rank's micro-batches: two samples each, whole numbers."""
        import torch

        how = case.values
        if how["width"] == 1:  # means 1, 3, 5, 7 on rank 0, one more on each further rank
            means = [2 * number + 1 + rank + how["seed"] % 1000 for number in range(how["micro"])]
            return [torch.tensor([[mean - 1.0], [mean + 1.0]]).double() for mean in means]
        made = torch.Generator().manual_seed(how["seed"] * 1000 + rank)
        sizes = how["micro"], 2, how["width"]
        batches = torch.randint(1, 10, sizes, generator=made).double()
        return [batch + 10 * number for number, batch in enumerate(batches)]  # none is another

    def on_rank(self, answer: Any, case: Case, bench: Any) -> Any:
        batches = bench.keep(self.inputs(case, bench.rank), "a micro-batch")
        k = case.values["k"]
        seen = micro_batches.watched(answer.train, build(case), RATE, batches, k)
        gc.collect()  # a DDP model must be gone before its process group is
        return seen

    def judge(self, case: Case, results: Sequence[Any], run: Any) -> Iterator[Fault]:
        k, micro = case.values["k"], case.values["micro"]
        groups = [range(at, min(at + k, micro)) for at in range(0, micro, k)]
        wanted = Reference.of(self, case, groups)
        calls = [[call.op for call in rank.calls] for rank in run]
        for rank, result in enumerate(results):
            seen = micro_batches.Seen(
                f"rank {rank}", result["events"], result["gradients"], calls[rank]
            )
            faults = [*seen.walk(groups, micro, result["module"])]
            for step in range(len(groups)) if not faults else ():
                faults = [*self.gradient(seen, step, wanted, case), *self.count(seen, step)]
                if faults:
                    break
            yield from faults
            if faults:
                return
        for rank, result in enumerate(results):
            told = result["told"]
            if type(told) is not int or told != len(groups):
                number = type(told) is int
                what = values.told(told) if number or told is None else f"a {type(told).__name__}"
                mistake = "nothing_returned" if told is None else "" if number else "wrong_type"
                told = f"rank {rank} returned {what}, should be {len(groups)}: the number of steps"
                yield Fault("steps", told, mistake)
                return

    def count(self, seen: micro_batches.Seen, step: int) -> Iterator[Fault]:
        forwards, backwards, made = seen.flags(step)
        last = len(forwards)
        told = f"{seen.where}, step {step + 1}: {made} all-reduces for {last} micro-batches"
        if made > 1:
            under = not all(backwards[:-1])
            yield Fault("count", told, "backward_only" if under else "every_time")
        elif seen.by_hand and seen.made + len(seen.by_hand) > len(seen.gradients):
            told = f"{seen.where}: {made} all-reduce by DDP in step {step + 1}, and in all "
            told += f"{len(seen.by_hand)} calls of your own: {', '.join(seen.by_hand[:4])}"
            yield Fault("count", told, "by_hand")
        elif not made and not seen.by_hand:
            yield Fault("count", told, "never_synced")

    def gradient(
        self, seen: micro_batches.Seen, step: int, wanted: Reference, case: Case
    ) -> Iterator[Fault]:
        want, have = wanted.mean[step], seen.gradients[step]
        pairs = list(zip(want, have, strict=True))
        if all(b is not None and values.same(b, a) for a, b in pairs):
            return
        if any(b is None for _, b in pairs):
            told = f"{seen.where}, step {step + 1}: a parameter has no gradient"
            yield Fault("gradient", told, "emptied_inside")
            return
        a, b = next((a, b) for a, b in pairs if not values.same(b, a))
        told = f"{seen.where}, step {step + 1}: the gradient is {values.told(b)}, should be "
        told += values.told(a)
        mistake = seen.unsynced(step) or usual(seen, step, wanted, case)
        yield Fault("gradient", f"{told}\n{seen.held(step)}", mistake)


def usual(seen: micro_batches.Seen, step: int, wanted: Reference, case: Case) -> str:
    """The mistake whose gradient this is."""
    want, have = wanted.mean[step], seen.gradients[step]
    n, k, size = case.world_size, case.values["k"], wanted.sizes[step]
    micro = case.values["micro"]

    def is_(others: Sequence[Any]) -> bool:
        return all(values.same(b, a) for a, b in zip(others, have, strict=True))

    if size > 1 and is_([g * size for g in want]):
        return "sum"
    if size < k and is_([g * size / k for g in want]):
        return "divided_by_k"
    if size < micro and is_([g * size / micro for g in want]):
        return "divided_by_all"
    if n > 1 and is_([g / n for g in want]):
        return "divided_again"
    if n > 1 and seen.by_hand and is_([g * n for g in want]):
        return "by_hand"
    last = wanted.last[step]
    if size > 1 and (is_(last) or is_([g / size for g in last])):
        return "emptied_inside"
    if step and is_([g + old for g, old in zip(want, seen.gradients[step - 1], strict=True)]):
        return "not_emptied"
    return ""


@dataclass(frozen=True)
class Reference:
    """What one process gets: by step, the mean gradient of the group, that of the group's last
    micro-batch alone, and how many micro-batches the group has."""

    mean: list[list[Any]]
    last: list[list[Any]]
    sizes: list[int]

    @classmethod
    def of(cls, task: Accumulate, case: Case, groups: Sequence[range]) -> Reference:
        import torch

        model = build(case)
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
        batches = [task.inputs(case, rank) for rank in range(case.world_size)]
        mean, last = [], []
        for group in groups:
            mean.append(gradient(model, [of[number] for of in batches for number in group]))
            last.append(gradient(model, [of[group[-1]] for of in batches]))
            for p, g in zip(model.parameters(), mean[-1], strict=True):
                p.grad = g
            optimizer.step()
        return cls(mean, last, [len(group) for group in groups])


def gradient(model: Any, batches: Sequence[Any]) -> list[Any]:
    """Of the mean of the losses."""
    one = copy.deepcopy(model)
    one.zero_grad()
    (sum(one(batch).mean() for batch in batches) / len(batches)).backward()
    return [p.grad for p in one.parameters()]


def build(case: Case) -> Any:
    import torch
    from torch import nn

    class Net(nn.Module):
        """Linear with one weight, so that the gradient is the mean of the inputs; else squared."""

        def __init__(self, width: int):
            super().__init__()
            self.square = width > 1
            self.first = nn.utils.skip_init(nn.Linear, width, 1, bias=False, dtype=torch.float64)
            self.first.load_state_dict({"weight": torch.ones([1, width])})

        def forward(self, x: Any) -> Any:
            x = self.first(x)
            return torch.log1p(x.square()) if self.square else x

    return Net(case.values["width"])


EXERCISES = (Accumulate(),)
