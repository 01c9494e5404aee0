"""What a rank did in a traced step, and which part of its all-reduces nothing hides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product, zip_longest
from typing import Any

from ddp_lessons.run import Rank, Run

Stretch = tuple[float, float]  # begin and end, in seconds


@dataclass(frozen=True)
class Step:
    """One step of one rank, in monotonic seconds.

    `gradients` are the moments at which a gradient was ready, `sent` the all-reduces by number of
    their bucket, `delay` the longest delay that one of them was given, in seconds.
    """

    rank: int
    forward: Stretch
    backward: Stretch
    update: Stretch
    gradients: tuple[float, ...]
    sent: tuple[Stretch, ...]
    delay: float

    @property
    def computed(self) -> float:
        """When the backward had computed its last gradient. From then on it only waits."""
        return max(self.gradients)

    @property
    def parts(self) -> list[float]:
        """How long the forward took, then the backward to each gradient after the one before."""
        moments = [self.backward[0], *sorted(self.gradients)]
        return [length([self.forward]), *(end - begin for begin, end in pairwise(moments))]

    @property
    def exposed(self) -> list[Stretch]:
        """The time in which some all-reduce was under way and this rank computed nothing."""
        busy = [self.forward, (self.backward[0], self.computed), self.update]
        return without(joined(self.sent), busy)

    @property
    def early(self) -> int:
        """How many all-reduces began before the last gradient was ready."""
        return sum(begin < self.computed for begin, _ in self.sent)


def steps(run: Run) -> list[Step]:
    """One step of each rank, the same one: of those with as many all-reduces as the last, the one
    that the machine disturbed least, which is the quickest.

    From the spans that trace() recorded: "forward", "backward", "step", and within the backward
    "gradient" (a moment) and "all-reduce" (with `bucket`, and `delay` in seconds if it had one).
    Raises ValueError if a rank lacks one of them, if one did not end, or if the ranks did not make
    as many steps.
    """
    return list(min(_alike(run), key=lambda those: max(s.update[1] - s.forward[0] for s in those)))


def matched(runs: Sequence[Run]) -> list[list[Step]]:
    """One step of each run, of those that steps() chooses from: the ones whose forwards and
    backwards took as nearly the same time as can be, on all ranks of all runs.

    What the machine was busy with differs from step to step, and would look like a difference
    between the runs. Of a single run, what steps() finds. Raises its ValueError.
    """
    if len(runs) == 1:
        return [steps(runs[0])]
    choices = [_alike(run) for run in runs]
    return [list(those) for those in min(product(*choices), key=_difference)]


def _difference(chosen: Sequence[Sequence[Step]]) -> float:
    """By how many seconds, over all parts, the forwards and the backwards differ."""
    parts = [one.parts for those in chosen for one in those]
    return sum(max(lengths) - min(lengths) for lengths in zip_longest(*parts, fillvalue=0.0))


def _alike(run: Run) -> list[tuple[Step, ...]]:
    """The steps, on all ranks, with as many all-reduces as the last."""
    ranks = [_steps(rank) for rank in run]
    if len({len(made) for made in ranks}) > 1:
        raise ValueError("the ranks recorded different numbers of steps")
    whole = list(zip(*ranks, strict=True))
    return [those for those in whole if _buckets(those) == _buckets(whole[-1])]


def _buckets(those: Sequence[Step]) -> list[int]:
    return [len(one.sent) for one in those]


def _steps(rank: Rank) -> list[Step]:
    spans = [record.values for record in rank.records if record.name == "span"]
    if any(span["times"][1] is None for span in spans):
        raise ValueError(f"a span of rank {rank.rank} did not end")
    parts = [
        [tuple(span["times"]) for span in spans if span["span"] == name]
        for name in ("forward", "backward", "step")
    ]
    if not parts[0] or len({len(found) for found in parts}) > 1:
        raise ValueError(f'rank {rank.rank}: each step needs a "forward", a "backward", a "step"')
    return [_step(rank.rank, spans, *each) for each in zip(*parts, strict=True)]


def _step(
    rank: int, spans: Sequence[Any], forward: Stretch, backward: Stretch, update: Stretch
) -> Step:
    inside = [span for span in spans if backward[0] <= span["times"][0] <= backward[1]]
    gradients = [span["times"][0] for span in inside if span["span"] == "gradient"]
    sent = sorted((s for s in inside if s["span"] == "all-reduce"), key=lambda s: s["bucket"])
    if not gradients or not sent:
        raise ValueError(f'rank {rank}: each backward needs a "gradient" and an "all-reduce"')
    stretches = tuple(tuple(span["times"]) for span in sent)
    delay = max(span.get("delay", 0) for span in sent)
    return Step(rank, forward, backward, update, tuple(gradients), stretches, delay)


def joined(stretches: Iterable[Stretch]) -> list[Stretch]:
    """The same time without overlaps, in order."""
    made: list[Stretch] = []
    for begin, end in sorted(stretches):
        if made and begin <= made[-1][1]:
            made[-1] = made[-1][0], max(made[-1][1], end)
        else:
            made.append((begin, end))
    return made


def without(stretches: Sequence[Stretch], taken: Iterable[Stretch]) -> list[Stretch]:
    """The part of `stretches` that lies in none of `taken`."""
    left = list(stretches)
    for start, stop in taken:
        cut = []
        for begin, end in left:
            cut += [(begin, min(end, start)), (max(begin, stop), end)]
        left = [(begin, end) for begin, end in cut if begin < end]
    return sorted(left)


def length(stretches: Iterable[Stretch]) -> float:
    return sum(end - begin for begin, end in stretches)
