"""Which samplers a check makes, and what torch's give in their place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ddp_lessons.checks.dealing import Draw
from ddp_lessons.checks.exercise import Case


@dataclass(frozen=True)
class Plan:
    """One sampler: its arguments, and the epochs that it is told between passes (None: nothing)."""

    length: int
    options: dict[str, Any]
    steps: Sequence[int | None]

    @property
    def told(self) -> str:
        arguments = "".join(f", {name}={value}" for name, value in self.options.items())
        return f"Sampler(<{self.length} sample{'s' * (self.length > 1)}>{arguments})"

    def after(self, step: int) -> str:
        """In words, what the sampler was told before a pass."""
        epochs = self.epochs(step)
        told = [f"set_epoch({epochs[-1]})"] if epochs else []
        told += ["half of a pass"] if self.again(step) else []
        return f" after {' and '.join(told)}" if told else ""

    def again(self, step: int) -> bool:
        """Whether a pass comes after another one with nothing told in between."""
        return 0 < step < len(self.steps) and self.steps[step] is None

    def told_at(self, step: int) -> int | None:
        return self.steps[step] if step < len(self.steps) else None

    def epochs(self, step: int) -> tuple[int, ...]:
        return tuple(epoch for epoch in self.steps[: step + 1] if epoch is not None)


def planned(case: Case) -> list[Plan]:
    """The samplers of a case, those without shuffle first, all ranks of one beside each other."""
    facts = case.values
    places: list[dict[str, Any]] = [{}]
    if facts["replicas"]:
        places = [{"num_replicas": n, "rank": r} for n in facts["replicas"] for r in range(n)]
    orders = [({"shuffle": False}, [None, None, 1])]
    for number, seed in enumerate(facts["seeds"]):
        # Each seed at epochs of its own, and back to 0 with those that end there.
        steps = [epoch + number if epoch else epoch for epoch in facts["steps"]]
        orders.append(({"seed": seed} if seed else {}, steps))
    return [
        Plan(length, {**place, **order}, steps)
        for order, steps in orders
        for length in facts["lengths"]
        for place in places
    ]


def dealt_to(case: Case, rank: int) -> dict[int, Plan]:
    """The samplers that one process makes, by number: all of a case, or its part of the grid."""
    plans = dict(enumerate(planned(case)))
    if not case.values["replicas"]:
        return plans
    return {number: plan for number, plan in plans.items() if number % case.world_size == rank}


def latest_epochs(plans: Sequence[Plan]) -> list[int]:
    """What any of these samplers was told last, before each pass."""
    latest, found = 0, []
    for step in range(max(len(plan.steps) for plan in plans)):
        told = [epoch for plan in plans if (epoch := plan.told_at(step)) is not None]
        latest = told[-1] if told else latest
        found.append(latest)
    return found


def draw(
    case: Case, here: int, index: int, plan: Plan, step: int, got: list[int], latest: int
) -> Draw:
    place = {"num_replicas": case.world_size, "rank": here} | plan.options
    ranks, rank = place["num_replicas"], place["rank"]
    shuffle, seed = place.get("shuffle", True), place.get("seed", 0)
    epochs = plan.epochs(step)
    epoch = epochs[-1] if epochs else 0
    return Draw(
        here=here,
        world_size=case.world_size,
        rank=rank,
        ranks=ranks,
        length=plan.length,
        shuffle=shuffle,
        seed=seed,
        epochs=epochs,
        latest=latest,
        drawn=(here, index, step),
        table=(plan.length, ranks, shuffle, seed, step),
        got=got,
        want=_torchs(plan.length, ranks, rank, shuffle, seed, epoch),
    )


@lru_cache(1 << 14)
def _torchs(length: int, ranks: int, rank: int, shuffle: bool, seed: int, epoch: int) -> list[int]:
    from torch.utils.data import DistributedSampler

    sampler = DistributedSampler(range(length), ranks, rank, shuffle=shuffle, seed=seed)
    sampler.set_epoch(epoch)
    return list(sampler)
