"""Early stopping in one process that knows all losses, and what each known mistake makes of it."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

TRIES = 100_000


def stop(losses: Sequence[float], patience: int, how: str = "") -> int:
    """After how many of these epochs training stops. `how`: in which wrong way."""
    best, bad = math.inf, 0
    for number, loss in enumerate(losses, 1):
        lower = loss <= best if how == "tie" else loss < best
        bad = 0 if lower and how != "not_reset" else bad + (not lower)
        best = loss if how == "previous" else min(best, loss)
        if bad >= patience + (how == "one_late") - (how == "one_early"):
            return number
    return len(losses)


def vote(series: Sequence[Sequence[float]], patience: int, enough: int) -> int:
    """After how many epochs at least `enough` of the ranks want to stop, each by its own losses."""
    for number in range(1, len(series[0]) + 1):
        wish = 0
        for losses in series:
            lowest = min(losses[:number])
            wish += number - 1 - losses.index(lowest) >= patience
        if wish >= enough:
            return number
    return len(series[0])


@dataclass(frozen=True)
class Plan:
    """What is right, and what is not. `sums` has the sum of losses by epoch, then by rank."""

    sums: Sequence[Sequence[int]]
    counts: Sequence[int]
    patience: int
    epochs: int

    @classmethod
    def of(cls, how: Mapping[str, Any]) -> Plan:
        return cls(how["sums"], how["counts"], how["patience"], how["epochs"])

    @cached_property
    def all(self) -> list[float]:
        """By epoch, the mean loss over all ranks' samples."""
        return [sum(of) / sum(self.counts) for of in self.sums]

    @cached_property
    def each(self) -> list[list[float]]:
        """By rank, then by epoch, the mean loss of its shard."""
        of_rank = zip(*self.sums, strict=True)
        return [[x / n for x in of] for of, n in zip(of_rank, self.counts, strict=True)]

    @cached_property
    def means(self) -> list[float]:
        return [sum(of) / len(of) for of in zip(*self.each, strict=True)]

    @cached_property
    def ran(self) -> int:
        return stop(self.all, self.patience)

    @property
    def best(self) -> float:
        return min(self.all[: self.ran])

    @cached_property
    def own(self) -> list[int]:
        """After how many epochs each rank would stop by its own loss."""
        return [stop(losses, self.patience) for losses in self.each]

    def wrong(self) -> Iterator[tuple[str, int]]:
        """The mistakes in when to stop, and after how many epochs each of them does. Those that
        can be made on one rank show there: on several, the others are looked at."""
        n = len(self.counts)
        if n == 1:
            for how in ("one_late", "one_early", "not_reset", "previous", "tie"):
                yield how, stop(self.all, self.patience, how)
        else:
            yield "mean_of_means", stop(self.means, self.patience)
            yield "any_votes", vote(self.each, self.patience, 1)
            yield "all_vote", vote(self.each, self.patience, n)
            yield "one_shard", self.own[0]

    def mistake(self, ran: int) -> str:
        """The mistake that stops after so many epochs, "" if none does or more than one."""
        found = [name for name, wrong in self.wrong() if wrong == ran]
        return found[0] if len(found) == 1 else ""

    def wrong_best(self, rank: int, told: float) -> str:
        """The mistake that gives this as the lowest loss."""
        known = {
            "last_loss": self.all[self.ran - 1],
            "own_loss": min(self.each[rank][: self.ran]),
            "mean_of_means": min(self.means[: self.ran]),
            "sum": self.best * sum(self.counts),
        }
        found = [name for name, wrong in known.items() if near(told, wrong)]
        return found[0] if len(found) == 1 else ""


def near(told: float, want: float) -> bool:
    return math.isclose(told, want, rel_tol=1e-6)


def losses(
    draw: random.Random, counts: Sequence[int], patience: int, stops: bool
) -> tuple[list[list[int]], int]:
    """The sums of losses by epoch and rank, and how many epochs there may be at most: such that
    each mistake stops after another epoch than what is right, and than the others if there are few
    ranks. If not
    `stops`, patience never ends it."""
    for _ in range(TRIES):
        longest = 14 if stops else 5
        # Falling at first, then up and down, so that there are several new lowest losses.
        level = [max(5, 7 - epoch) for epoch in range(longest)]
        sums = [[n * x + draw.randint(-3, 3) for n in counts] for x in level]
        plan = Plan(sums, counts, patience, longest)
        if good(plan, stops):
            return sums, longest
    raise AssertionError("no such losses were found")


def good(plan: Plan, stops: bool) -> bool:
    if not stops:
        last = [plan.all[-1]]
        return (
            plan.ran == plan.epochs
            and plan.best not in last
            and stop(plan.all + [99.0], plan.patience) > plan.epochs
        )
    found = [ran for _, ran in plan.wrong()]
    if plan.ran >= plan.epochs - 1 or plan.ran in found:
        return False
    if len(plan.counts) > 3:  # mistakes have been told apart with fewer ranks
        return True
    if len(set(found)) < len(found):
        return False
    if len(plan.counts) == 1:
        return True
    # The last rank's own loss stops it first.
    own = plan.own
    if own[-1] >= min(own[:-1]) or own[0] == plan.ran:
        return False
    bests = [plan.best, plan.all[plan.ran - 1], min(plan.means[: plan.ran])]
    bests += [min(each[: plan.ran]) for each in plan.each]
    return all(abs(a - b) > 1e-3 for a, b in itertools.combinations(bests, 2))
