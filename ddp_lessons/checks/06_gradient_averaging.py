"""The exercises of lesson 06."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from ddp_lessons.checks import training, values
from ddp_lessons.checks.exercise import Case, Exercise, Fault
from ddp_lessons.checks.find_the_bug import FindTheBug


class Weighted(Exercise):
    key = "06_gradient_averaging/weighted"
    minutes = 20
    names = ("average_gradients",)
    requirements = {
        "gradient": "at every step, .grad is the gradient of all ranks' samples together",
        "empty": "a rank without samples ends with that gradient, too",
        "parameters": "the parameters are left as they were",
    }
    mistakes = {
        "mean_of_means": "That counts each rank alike, however many samples it has. A sample of a "
        "small part then weighs more than one of a large part.",
        "sum": "That is the sum of the ranks' gradients. Each of them is a mean over its own "
        "samples: what share of all samples does it stand for?",
        "weighted_sum": "The gradients are weighted by their counts and added up, and nobody "
        "divides by the number of all samples.",
        "divided_again": "Weighted by share, and then divided by the number of ranks on top. The "
        "shares add up to 1 already.",
        "over_ranks": "Weighted by the counts and divided by the number of ranks. Weights have to "
        "be divided by their own sum.",
        "not_averaged": "Each rank still has its own gradient. Whatever is sent must end in .grad.",
        "returned": "The function returned something, and .grad is as it was. The caller reads "
        ".grad.",
        "zeros": "Nothing but zeros is left. A share of the whole is less than 1, and a division "
        "that rounds down, like //, makes 0 of it. Or was .grad emptied?",
        "share_only": "Each rank has weighted its own gradient, and nothing was added up.",
        "own_weight": "Each rank has weighted the sum, by its own share. Weight before you add.",
        "count_of_one": "The number of all samples is taken from one rank's count times the number "
        "of ranks. The counts differ: add them up.",
        "old_counts": "The counts are those of the first step. They change at every step.",
        "left_out": "A rank without samples takes the same step as the others, or its model falls "
        "behind. It needs their gradient.",
        "none_gradient": "Without samples nobody calls backward(), and .grad is None. What does "
        "such a rank add to the sum?",
        "empty_skips": "A rank without samples made fewer calls than the others. They wait for it, "
        "or meet a later call of it.",
        "own_count": "A rank without samples divides by its own count, 0. The number to divide by "
        "is that of all ranks' samples.",
        "empty_counted": "A rank without samples counts as if it had one. Its count is 0, and adds "
        "nothing to the number of all samples.",
        "reduced": "dist.reduce leaves the result on one rank; on the others nothing is sure. "
        "Every rank needs it.",
        "parameters_changed": "Average what the step is made from: the gradients. The parameters "
        "belong to the optimizer.",
    }

    def cases(self, seed: int) -> Sequence[Case]:
        draw = random.Random(seed)
        last = [[draw.randint(0, 5) for _ in range(4)] for _ in range(3)]
        for number, counts in enumerate(last):
            counts[number], counts[number + 1] = 0, 6  # at first rank 0 is empty
        known = [
            ("2 ranks, equal parts", [[3, 3], [4, 4]]),
            ("2 ranks, unequal parts", [[3, 1], [1, 4]]),
            ("3 ranks, rank 2 without samples", [[4, 2, 0], [1, 3, 0], [2, 2, 0]]),
            ("1 rank", [[3], [2]]),
            ("4 ranks, another one without samples at each step", last),
        ]
        return [
            Case(
                told, len(steps[0]), {"counts": steps, "seed": seed, "hidden": 1 + (steps is last)}
            )
            for told, steps in known
        ]

    def steps(self, case: Case) -> list[list[training.Part]]:
        first = case.values["seed"] * 100
        return [
            training.parts(first + number, counts)
            for number, counts in enumerate(case.values["counts"])
        ]

    def on_rank(self, answer: Any, case: Case, bench: Any) -> Any:
        mine = [every[bench.rank] for every in self.steps(case)]
        net = training.model(case.values["hidden"]).to(bench.device)
        return training.train(net, mine, answer.average_gradients, training.RATE)

    def judge(self, case: Case, results: Sequence[Any], run: Any) -> Iterator[Fault]:
        import torch

        net = training.model(case.values["hidden"], torch.float64)
        right = training.reference(net, self.steps(case), training.RATE)
        for number, (counts, (own, want)) in enumerate(
            zip(case.values["counts"], right, strict=True)
        ):
            at = f"step {number + 1}, counts {', '.join(map(str, counts))}: "
            moved = [rank for rank, found in enumerate(results) if found[number]["moved"]]
            if moved:
                told = f"{at}rank {moved[0]}'s parameters were changed"
                yield Fault("parameters", told, "parameters_changed")
                return
            wrong = training.off(results, number, want)
            if not wrong:
                continue
            got = [found[number]["gradient"] for found in results]
            first = wrong[0]
            told = (
                f"{at}rank {first}'s .grad is {values.told(got[first])}, should be "
                f"{values.told(want)}"
            )
            if all(counts[rank] == 0 for rank in wrong):
                yield Fault("empty", told, "left_out")
            elif not values.is_finite(got):
                yield Fault("gradient", told, "not_finite")
            else:
                mistake = training.match(
                    got, self.candidates(own, counts, case.values["counts"][0])
                )
                if mistake == "not_averaged" and results[first][number]["returned"]:
                    mistake = "returned"
                if not mistake and any(call.op == "reduce" for call in run[first].calls):
                    mistake = "reduced"
                yield Fault("gradient", told, mistake)
            return

    def candidates(
        self, own: Sequence[Any], counts: Sequence[int], first: Sequence[int]
    ) -> Iterator[tuple[str, Sequence[Any]]]:
        """What each rank would have by a known mistake. `first`: the counts of the first step."""
        n, total = len(own), sum(counts)
        added, weighted = sum(own), weigh(own, counts)
        yield "mean_of_means", [added / n] * n
        yield "mean_of_means", [added / sum(map(bool, counts))] * n
        yield "sum", [added] * n
        yield "weighted_sum", [weighted] * n
        yield "divided_again", [weighted / total / n] * n
        yield "over_ranks", [weighted / n] * n
        yield "not_averaged", [g if c else None for g, c in zip(own, counts, strict=True)]
        yield "not_averaged", own
        yield "zeros", [0 * added] * n
        yield "share_only", [g * c / total for g, c in zip(own, counts, strict=True)]
        yield "own_weight", [added * c / total for c in counts]
        if not all(counts):
            yield "empty_counted", [weighted / sum(max(c, 1) for c in counts)] * n
        for one in filter(None, counts):
            yield "count_of_one", [weighted / (one * n)] * n
        if all(counts):
            yield "count_of_one", [weighted / (c * n) for c in counts]
        if counts != first:
            yield "old_counts", [weigh(own, first) / sum(first)] * n
            yield "old_counts", [weighted / sum(first)] * n

    def failed(self, case: Case, run: Any, kind: str) -> str:
        empty = [rank for rank in run if any(c[rank.rank] == 0 for c in case.values["counts"])]
        for rank in empty:
            failure = rank.failure
            if failure and failure.kind == "ZeroDivisionError":
                return "own_count"
            if failure and "NoneType" in failure.message:
                return "none_gradient"
        full = max((rank.calls for rank in run if rank not in empty), key=len, default=())
        if kind in ("waits", "mismatch", "left_early") and any(
            skipped(rank, full) for rank in empty
        ):
            return "empty_skips"
        return ""


def weigh(own: Sequence[Any], counts: Sequence[int]) -> Any:
    return sum(g * c for g, c in zip(own, counts, strict=True))


def skipped(rank: Any, full: Sequence[Any]) -> bool:
    """Whether a rank made fewer calls in some step than another one: it came to its end with fewer,
    or stands at its first line again where the other is at a later one."""
    lines, others = [call.line for call in rank.calls], [call.line for call in full]
    apart = next((n for n, (a, b) in enumerate(zip(lines, others, strict=False)) if a != b), None)
    if apart is None:
        return rank.finished and len(lines) < len(others)
    return apart > 0 and lines[apart] == lines[0]


EXERCISES = (Weighted(), FindTheBug())
