"""The exercise that writes a sampler."""

from __future__ import annotations

import operator
import random
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from ddp_lessons.checks import dealing, mistakes_07, values
from ddp_lessons.checks.dealing import Draw
from ddp_lessons.checks.exercise import Case, Exercise, Fault
from ddp_lessons.checks.plans import Plan, dealt_to, draw, latest_epochs, planned

FIRST = 100  # sample 0 of a dataset: no sample is its own number
RANDOM = {
    "torch's random numbers (the global generator)": "torch's",
    "numpy's random numbers": "numpy's",
    "Python's random numbers": "Python's",
}
METHODS = ("set_epoch", "__len__", "__iter__")


class Sampler(Exercise):
    key = "07_distributed_sampler/sampler"
    minutes = 18
    names = ("Sampler",)
    requirements = {
        "deal": "without shuffle each rank gets the samples that torch's DistributedSampler gives "
        "it; its place is the one it was told, else the process group's",
        "padding": "all ranks get equally many, padded as torch pads; len() is how many",
        "order": "with shuffle the order is torch's, in every epoch and for every seed",
        "alone": "no communication, no random numbers of the whole process, no sampler of torch's",
    }
    mistakes = mistakes_07.SAMPLER
    requirement_of = mistakes_07.REQUIREMENT
    may_change = frozenset(RANDOM)
    timeout = 12

    def cases(self, seed: int) -> Sequence[Case]:
        made = random.Random(seed)
        one, other = made.sample(range(1, 100), 2)
        epoch = made.randint(3, 20)
        steps = [None, None, 1, 1, None, epoch, 0]
        of_group = {"replicas": [], "seeds": [0, one, other], "steps": steps}
        whole_grid = {
            "lengths": [3, 8, *sorted(made.sample(range(4, 20), 2)), 1, 2, 33],
            "replicas": [*range(1, 9)],
            "seeds": [0, one],
            "steps": [None, 1, epoch],
        }
        return [
            Case(
                "a group of 2, num_replicas and rank not given",
                2,
                {**of_group, "lengths": [6, 5, 10, 1]},
            ),
            Case(
                "a group of 4, num_replicas and rank not given",
                4,
                {**of_group, "lengths": [8, 10, 15, 3, 1]},
            ),
            Case(
                "a group of 1, num_replicas and rank not given", 1, {**of_group, "lengths": [5, 1]}
            ),
            Case("a group of 3, num_replicas and rank given", 3, whole_grid),
        ]

    def on_rank(self, answer: Any, case: Case, bench: Any) -> Any:
        import torch

        from ddp_lessons.checks import examine
        from ddp_lessons.worker import record

        plans = list(dealt_to(case, bench.rank).values())
        datasets = {
            plan.length: bench.keep(torch.arange(FIRST, FIRST + plan.length), "the dataset")
            for plan in plans
        }
        before, torchs, told = examine.state(), _TorchsOwn(), ""
        try:
            made = []
            for plan in plans:
                told = plan.told
                made.append(answer.Sampler(datasets[plan.length], **plan.options))
            for name in METHODS:
                if not callable(getattr(made[0], name, None)):
                    return {"lacks": name}
            drawn: list[list[Any]] = [[] for _ in plans]
            left: list[list[Any]] = [[] for _ in plans]  # passes that were left half way
            # All are told an epoch before any is drawn from: they must not share what they keep.
            for step in range(max(len(plan.steps) for plan in plans)):
                for plan, sampler in zip(plans, made, strict=True):
                    told = f"{plan.told}{plan.after(step)}"
                    if plan.told_at(step) is not None:
                        sampler.set_epoch(plan.told_at(step))
                for number, (plan, sampler) in enumerate(zip(plans, made, strict=True)):
                    told, most = f"{plan.told}{plan.after(step)}", 3 * plan.length + 30
                    if plan.again(step):
                        outer, inner = _pass_in_a_pass(sampler, most, len(drawn[number][0]))
                        left[number].append(outer)
                        drawn[number].append(inner)
                    elif step < len(plan.steps):
                        drawn[number].append(_pass(sampler, most))
            sizes = []
            for plan, sampler in zip(plans, made, strict=True):
                told = f"len() of {plan.told}"
                sizes.append(_whole(sampler.__len__()))
        except Exception:
            record(examine.CALLED, told=told)
            raise
        finally:
            torchs.restore()
        if not case.values["replicas"]:
            _draw_for_the_map(plans, drawn)
        changed = [name for name in examine.changed(before, examine.state()) if name in RANDOM]
        return {
            "drawn": drawn,
            "left": left,
            "sizes": sizes,
            "random": changed,
            "torchs": torchs.used,
        }

    def judge(self, case: Case, results: Sequence[Any], run: Any) -> Iterator[Fault]:
        for result in results:
            if "lacks" in result:
                yield Fault("", f"a Sampler has no method {result['lacks']}()", "no_function")
                return
        yield from self._shared(results)
        draws = []
        for rank, result in enumerate(results):
            plans = dealt_to(case, rank)
            latest = latest_epochs(list(plans.values()))
            for (index, plan), passes in zip(plans.items(), result["drawn"], strict=True):
                for step, got in enumerate(passes):
                    if fault := self._type_fault(rank, plan, step, got):
                        yield fault
                        return
                    draws.append(draw(case, rank, index, plan, step, got, latest[step]))
        draws.sort(key=lambda draw: draw.drawn[1])
        wrong = next((draw for draw in draws if draw.got != draw.want), None)
        if wrong:
            yield self._wrong(case, draws, wrong)
        else:
            yield from self._disturbed(case, results)
        if not wrong or wrong.shuffle:
            yield from self._sizes(case, results)
        for rank in run:
            if rank.calls:
                told = f"rank {rank.rank} called {rank.calls[0].op}, line {rank.calls[0].line}"
                yield Fault("alone", told, "communicates")
                return

    def failed(self, case: Case, run: Any, kind: str) -> str:
        return "communicates" if run.calls and kind in ("waits", "mismatch") else ""

    def _shared(self, results: Sequence[Any]) -> Iterator[Fault]:
        for rank, result in enumerate(results):
            if result["torchs"]:
                yield Fault("alone", f"rank {rank} used torch's DistributedSampler", "torchs_own")
                return
            if result["random"]:
                whose = " and ".join(RANDOM[name] for name in result["random"])
                told = f"rank {rank}: {whose} global random numbers are not where they were"
                yield Fault("alone", told, "global_random")
                return

    def _type_fault(self, rank: int, plan: Plan, step: int, got: Any) -> Fault | None:
        if not isinstance(got, tuple) and all(
            type(one) is int and not FIRST <= one < FIRST + plan.length for one in got
        ):
            return None
        which = f"rank {rank}: {plan.told}{plan.after(step)}"
        if isinstance(got, tuple):
            return Fault("deal", f"{which}: __iter__ returned {got[0]}", "no_iterator")
        for one in got:
            number = one.item() if hasattr(one, "item") and one.numel() == 1 else one
            if isinstance(number, int) and FIRST <= number < FIRST + plan.length:
                told = f"{which} gave {number}; the samples have the numbers 0 to {plan.length - 1}"
                return Fault("deal", told, "samples")
            if type(one) is not int:
                what = values.told(one) if isinstance(one, values.Other) else type(one).__name__
                told = f"{which} gave {what} where an int is due"
                return Fault("deal", told, "wrong_type")
        return None

    def _wrong(self, case: Case, draws: Sequence[Draw], wrong: Draw) -> Fault:
        name = dealing.mistake(draws)
        wrong, more = dealing.evidence(name, draws) or (wrong, "")
        _, index, step = wrong.drawn
        plan = planned(case)[index]
        told = [
            f"rank {wrong.here}: {plan.told}{plan.after(step)}",
            f"gave {values.told(wrong.got)}, should be {values.told(wrong.want)}",
            more,
        ]
        padded = wrong.length % wrong.ranks > 0
        guess = "order" if wrong.shuffle else "padding" if padded else "deal"
        requirement = self.requirement_of.get(name, guess)
        return Fault(requirement, "\n".join(told), name)

    def _disturbed(self, case: Case, results: Sequence[Any]) -> Iterator[Fault]:
        """A pass that was not itself once another had begun. All others are right."""
        for rank, result in enumerate(results):
            plans = dealt_to(case, rank).values()
            for plan, passes, left in zip(plans, result["drawn"], result["left"], strict=True):
                again = [step for step in range(len(passes)) if plan.again(step)]
                for step, got in zip(again, left, strict=True):
                    if got != passes[step]:
                        shuffled = plan.options.get("shuffle", True)
                        told = f"rank {rank}: {plan.told}, a pass that was left half way, and gone "
                        told += f"on with after another one\ngave {values.told(got)}, should be "
                        told += values.told(passes[step])
                        yield Fault("order" if shuffled else "deal", told, "one_iterator")
                        return

    def _sizes(self, case: Case, results: Sequence[Any]) -> Iterator[Fault]:
        for rank, result in enumerate(results):
            plans = dealt_to(case, rank).values()
            for plan, passes, size in zip(plans, result["drawn"], result["sizes"], strict=True):
                if type(size) is not int or size != len(passes[0]):
                    told = f"rank {rank}: {plan.told} gives {len(passes[0])} samples in a pass"
                    yield Fault("padding", f"{told}, its len() is {values.told(size)}", "wrong_len")
                    return


class _TorchsOwn:
    """Notes whether torch's DistributedSampler is used, until restore()."""

    def __init__(self) -> None:
        from torch.utils.data import DistributedSampler

        self.used, self._kind = False, DistributedSampler
        self._was = {name: vars(self._kind)[name] for name in ("__init__", "__iter__")}
        for name, function in self._was.items():
            setattr(self._kind, name, self._noting(function))

    def _noting(self, function: Any) -> Any:
        def noting(*args: Any, **options: Any) -> Any:
            self.used = True
            return function(*args, **options)

        return noting

    def restore(self) -> None:
        for name, function in self._was.items():
            setattr(self._kind, name, function)


def _whole(size: Any) -> Any:
    """A length as an int where len() would take it, else as it is."""
    try:
        return operator.index(size)
    except TypeError:
        return size


def _pass(sampler: Any, most: int) -> Any:
    """What one pass gives, cut at `most`; a tuple with what __iter__ returned if that is no
    iterator."""
    given = sampler.__iter__()
    if not hasattr(given, "__next__"):
        return ("None" if given is None else f"a {type(given).__name__}",)
    return list(islice(given, most))


def _pass_in_a_pass(sampler: Any, most: int, size: int) -> tuple[list[Any], Any]:
    """What two passes give, the second begun and ended half way through the first."""
    first = sampler.__iter__()
    begun = list(islice(first, (size + 1) // 2)) if hasattr(first, "__next__") else []
    second = _pass(sampler, most)
    return begun + (list(islice(first, most)) if hasattr(first, "__next__") else []), second


def _draw_for_the_map(plans: Sequence[Plan], drawn: Sequence[Any]) -> None:
    """Record epochs 0 and 1 of 10 samples or the fewer that there are, for views.shard_map()."""
    from ddp_lessons.worker import record

    shuffled = [index for index, plan in enumerate(plans) if plan.options == {}]
    index = max(shuffled, key=lambda index: (plans[index].length <= 10) * plans[index].length)
    for epoch in (None, 1):
        shard = drawn[index][plans[index].steps.index(epoch)]
        if isinstance(shard, list) and all(type(one) is int for one in shard):
            record("epoch", samples=plans[index].length, shard=shard)
