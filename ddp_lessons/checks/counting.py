"""A test on padded shards: what was dealt, the exact counts, and what is often counted instead."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ddp_lessons.checks.exercise import Case

Counts = tuple[tuple[int, ...], tuple[int, ...]]  # right and seen, by class
TRIES = 1000  # inputs that are looked at until the usual mistakes all show


@dataclass(frozen=True)
class Test:
    """Labels and predictions by number of the sample, and each rank's shard, padding included."""

    classes: int
    batch: int
    labels: tuple[int, ...]
    predicted: tuple[int, ...]
    shards: tuple[tuple[int, ...], ...]

    @property
    def ranks(self) -> range:
        return range(len(self.shards))

    def batches(self, rank: int) -> list[tuple[int, ...]]:
        shard = self.shards[rank]
        return [shard[at : at + self.batch] for at in range(0, len(shard), self.batch)]

    def own(self, rank: int) -> tuple[int, ...]:
        """A rank's shard without its padding: what is dealt after all samples have been."""
        dealt = enumerate(self.shards[rank])
        ranks, length = len(self.shards), len(self.labels)
        return tuple(sample for place, sample in dealt if place * ranks + rank < length)

    def counts(self, samples: Sequence[int]) -> Counts:
        right, seen = [0] * self.classes, [0] * self.classes
        for sample in samples:
            seen[self.labels[sample]] += 1
            right[self.labels[sample]] += self.labels[sample] == self.predicted[sample]
        return tuple(right), tuple(seen)

    @property
    def exact(self) -> Counts:
        return self.counts(range(len(self.labels)))

    @property
    def padded(self) -> Counts:
        return self.counts([sample for shard in self.shards for sample in shard])

    def predictions(self, samples: Sequence[int]) -> tuple[int, ...]:
        """How often each class was predicted."""
        found = [self.predicted[sample] for sample in samples]
        return tuple(found.count(one) for one in range(self.classes))


def rate(counts: Counts) -> float:
    return sum(counts[0]) / sum(counts[1]) if sum(counts[1]) else math.nan


def made(case: Case) -> Test:
    facts = case.values
    return _made(case.world_size, *(facts[name] for name in sorted(facts)))


@lru_cache(64)
def _made(ranks: int, batch: int, classes: int, epoch: int, length: int, seed: int, shuffle: bool):
    from torch.utils.data import DistributedSampler

    shards = []
    for rank in range(ranks):
        sampler = DistributedSampler(range(length), ranks, rank, shuffle=shuffle)
        sampler.set_epoch(epoch)
        shards.append(tuple(sampler))
    numbers = random.Random(f"{seed} {ranks} {length}")
    for _ in range(TRIES):
        labels = tuple(numbers.randrange(classes) for _ in range(length))
        predicted = tuple(
            label if numbers.random() < 0.6 else numbers.randrange(classes) for label in labels
        )
        test = Test(classes, batch, labels, predicted, tuple(shards))
        if length < ranks or _tells(test):
            break
    return test


def _tells(test: Test) -> bool:
    """Whether each of the usual mistakes shows, and none is taken for another by chance."""
    exact, length, ranks = test.exact, len(test.labels), len(test.shards)
    if min(exact[1]) < min(2, length // test.classes) or min(exact[0]) < 1 or rate(exact) == 1:
        return False
    others = [kept for kept in _others(test) if sorted(kept) != [*range(length)]]
    if any(test.counts(kept)[1] == exact[1] for kept in others):
        return False
    models = rate_models(test, 0)
    if length % ranks == 0:  # nothing is padded, and the ranks' shards are of one size
        models = {"mean_of_classes": models["mean_of_classes"]}
    models["nothing"] = [rate(exact)]
    found = {(name, round(one, 7)) for name, rates in models.items() for one in rates}
    counts = {("nothing", exact), *count_models(test)} if length % ranks else set()
    return all(len({value for _, value in pairs}) == len(pairs) for pairs in (found, counts))


def _others(test: Test) -> list[list[int]]:
    """What is kept where the padding is looked for on the first ranks, or all on the last one."""
    padding = sum(map(len, test.shards)) - len(test.labels)
    first = [shard[:-1] if rank < padding else shard for rank, shard in enumerate(test.shards)]
    joined = [sample for shard in test.shards for sample in shard]
    return [[s for shard in first for s in shard], joined[: len(test.labels)]]


def mistake_in_counts(test: Test, found: Sequence[Counts], calls: bool) -> str:
    """Why the counts of the ranks are not exact, "" if unknown. `calls`: whether any were made."""
    if not calls and len(found) > 1:
        return "no_work"
    if len(set(found)) > 1:
        return "one_rank" if has_one(test, found) else ""
    names = {name for name, counts in count_models(test) if counts == found[0]}
    if not names and found[0][1] == test.exact[1]:
        names = {"only_right"}
    elif not names and sum(found[0][1]) == len(test.labels):
        names = {"others_left_out"}
    return names.pop() if len(names) == 1 else ""


def has_one(test: Test, found: Sequence[Counts | None]) -> bool:
    """Whether a rank has sums over all ranks, exact or with the padding."""
    return any(one in (test.exact, test.padded) for one in found)


def count_models(test: Test) -> Iterator[tuple[str, Counts]]:
    """What every rank has after the usual mistakes."""
    dealt = [sample for shard in test.shards for sample in shard]
    yield "padding_counted", test.padded
    yield "padding_in_right", (test.padded[0], test.exact[1])
    yield "only_right", (test.predictions(range(len(test.labels))), test.exact[1])
    yield "by_prediction", (test.exact[0], test.predictions(range(len(test.labels))))
    yield "by_prediction", (test.padded[0], test.predictions(dealt))
    yield "too_many_left_out", test.counts([s for shard in test.shards for s in shard[:-1]])
    for counts in _again(test):
        yield "reduced_again", counts


def _again(test: Test) -> Iterator[Counts]:
    """Sums that went into a sum again: after each batch, or at the end."""
    ranks = len(test.shards)
    for whole in (test.exact, test.padded):
        yield _times(whole, ranks)
    for kept in (test.shards, [test.own(rank) for rank in test.ranks]):
        total: Counts = ((0,) * test.classes, (0,) * test.classes)
        for turn in range(len(test.batches(0))):
            batch = [s for r in test.ranks for s in test.batches(r)[turn] if s in kept[r]]
            before, more = _times(total, ranks), test.counts(batch)
            total = tuple(
                tuple(a + b for a, b in zip(x, y, strict=True))
                for x, y in zip(before, more, strict=True)
            )
        yield total


def _times(counts: Counts, factor: int) -> Counts:
    return tuple(tuple(factor * number for number in part) for part in counts)


def mistake_in_accuracy(test: Test, rank: int, accuracy: float) -> str:
    """Why an accuracy is not right beside counts that are, "" if unknown."""
    if not math.isfinite(accuracy):
        return "not_finite"
    if accuracy == sum(test.exact[0]) // sum(test.exact[1]):
        return "integer_division"
    names = [
        name
        for name, rates in rate_models(test, rank).items()
        if any(math.isclose(accuracy, one, rel_tol=1e-6) for one in rates)
    ]
    return names[0] if len(names) == 1 else ""


def rate_models(test: Test, rank: int) -> dict[str, list[float]]:
    """The accuracies that come of the usual mistakes, on one rank."""
    exact, padded = test.exact, test.padded
    parts = [right / seen for right, seen in zip(*exact, strict=True) if seen]
    return {
        "padding_in_right": [sum(padded[0]) / sum(exact[1])],
        "padding_in_seen": [sum(exact[0]) / sum(padded[1])],
        "mean_of_rates": rates(test),
        "mean_of_classes": [sum(parts) / len(parts), sum(parts) / test.classes],
        "own_rate": [rate(test.counts(test.own(rank))), rate(test.counts(test.shards[rank]))],
    }


def rates(test: Test) -> list[float]:
    """Means of rates: of ranks and of batches, with padding and without."""
    found = []
    for kept in (test.shards, [test.own(rank) for rank in test.ranks]):
        batches = [
            [sample for sample in batch if sample in kept[rank]]
            for rank in test.ranks
            for batch in test.batches(rank)
        ]
        found += [_mean(test, kept), _mean(test, [batch for batch in batches if batch])]
    return found


def _mean(test: Test, groups: Sequence[Sequence[int]]) -> float:
    return sum(rate(test.counts(group)) for group in groups) / len(groups)
