"""The exercises of lesson 06."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from ddp_lessons.checks import broken_run, training, values
from ddp_lessons.checks.exercise import Case, Exercise, Fault
from ddp_lessons.launcher import launch

RATE = 0.05


def off(results: Sequence[Any], number: int, want: Any) -> list[int]:
    """The ranks whose gradient after a step is not the wanted one."""
    found = [rank[number]["gradient"] for rank in results]
    return [rank for rank, got in enumerate(found) if not training.close(got, want)]


def alike(got: Any, made: Any) -> bool:
    return got is None if made is None else training.close(got, made)


def match(got: Sequence[Any], candidates: Iterator[tuple[str, Sequence[Any]]]) -> str:
    """The mistake that would give each rank what it has, "" if none would, or more than one."""
    names = {name for name, made in candidates if all(map(alike, got, made))}
    return names.pop() if len(names) == 1 else ""


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
        return training.train(net, mine, answer.average_gradients, RATE)

    def judge(self, case: Case, results: Sequence[Any], run: Any) -> Iterator[Fault]:
        import torch

        net = training.model(case.values["hidden"], torch.float64)
        right = training.reference(net, self.steps(case), RATE)
        for number, (counts, (own, want)) in enumerate(
            zip(case.values["counts"], right, strict=True)
        ):
            at = f"step {number + 1}, counts {', '.join(map(str, counts))}: "
            moved = [rank for rank, found in enumerate(results) if found[number]["moved"]]
            if moved:
                told = f"{at}rank {moved[0]}'s parameters were changed"
                yield Fault("parameters", told, "parameters_changed")
                return
            wrong = off(results, number, want)
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
                mistake = match(got, self.candidates(own, counts, case.values["counts"][0]))
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


class FindTheBug(Exercise):
    key = "06_gradient_averaging/find_the_bug"
    minutes = 8
    names = ("finding", "average_gradients")
    requirements = {
        "finding": "finding() names the bug, the rank and the step that the records show",
        "gradient": "average_gradients() leaves the mean in .grad, on every rank at every step",
        "calls": "each rank makes one all_reduce a step for all gradients together",
    }
    mistakes = {
        "form": 'Return three values: one of "sum", "local", "twice", "old" and "weights", a rank '
        "from 0 to 2, and a step from 1 to 12, as the records number them.",
        "loss": "A high loss says that a rank has met odd samples, not that it has averaged "
        "wrongly. Compare gradients.",
        "later": "What goes wrong in one step stays visible in all that follow. Look for the first "
        "step after which the weights differ.",
        "earlier": "Up to here everything is in order. (In a list, record number 0 is step 1.)",
        "innocent_rank": "A gap tells that ranks differ, not which of them is wrong: rank 0 is no "
        "measure. Compute the mean of the local gradients, and see who does not have it.",
        "drift": "That the ranks drift apart is what follows. What was the gradient of that rank "
        "made of? Compare it with the other ranks', or with the local ones.",
        "other_bug": "Put the local gradients of that step together by hand, and see what gives "
        "the number in the records.",
        "unmended": "That is the bug: a rank whose own gradient is zero still ends with the sum.",
        "sum": "That is the sum on all ranks: nobody divides.",
        "twice": "That is the mean, divided by the number of ranks once more.",
        "always_three": "This is the sum divided by 3, as in the broken run, whatever the number "
        "of ranks: ask dist.get_world_size().",
        "zeros_kept": "A rank whose own gradient is zero still takes the step of the others: it "
        "needs the mean, too.",
        "fewer_ranks": "Ranks whose gradient is zero count, too: their samples are a part of the "
        "big batch.",
        "not_averaged": "Each rank still has its own gradient. The mean must end in .grad.",
        "skips_call": "A rank whose gradient is zero made fewer calls than the others, and their "
        "calls no longer pair up.",
        "many_calls": "The broken function packs all gradients into one tensor and makes one call. "
        "Keep that.",
        "parameters_changed": "Only .grad may change.",
    }

    def cases(self, seed: int) -> Sequence[Case]:
        """`zeros`: by step, the ranks whose inputs are zeros; none given: the broken run's own."""
        known = [
            ("3 ranks, the samples of the broken run", broken_run.RANKS, None, 1),
            ("2 ranks, gradients of zeros on one of them", 2, [[0], [], [0, 1]], 1),
            ("4 ranks, gradients of zeros on two of them", 4, [[0, 3], [1, 2], []], 1),
            ("1 rank", 1, [[], [0]], 1),
            ("3 ranks, a larger model", 3, [[], [2], [0, 1]], 2),
        ]
        return [
            Case(told, n, {"zeros": zeros, "seed": seed * 10 + number, "hidden": hidden})
            for number, (told, n, zeros, hidden) in enumerate(known)
        ]

    def steps(self, case: Case) -> list[list[training.Part]]:
        if case.values["zeros"] is None:
            return broken_run.samples()
        first, found = case.values["seed"] * 100, []
        for number, zeros in enumerate(case.values["zeros"]):
            every = training.parts(first + number, [2] * case.world_size)
            for rank in zeros:
                every[rank][0].zero_()
            found.append(every)
        return found

    def rate(self, case: Case) -> float:
        return broken_run.RATE if case.values["zeros"] is None else RATE

    def on_rank(self, answer: Any, case: Case, bench: Any) -> Any:
        mine = [every[bench.rank] for every in self.steps(case)]
        net = training.model(case.values["hidden"]).to(bench.device)
        found = answer.finding()
        steps = training.train(
            net, mine, lambda model, _: answer.average_gradients(model), self.rate(case)
        )
        return {"finding": found, "steps": steps}

    def judge(self, case: Case, results: Sequence[Any], run: Any) -> Iterator[Fault]:
        if case.values["zeros"] is None:
            yield from self.judge_finding([result["finding"] for result in results])
        yield from self.judge_gradient(case, [result["steps"] for result in results])
        wanted = len(self.steps(case))
        for rank in run:
            ops = [call.op for call in rank.calls]
            if ops != ["all_reduce"] * wanted and case.world_size > 1:
                kinds = ", ".join(sorted(set(ops))) or "none"
                told = f"rank {rank.rank} made {len(ops)} calls in {wanted} steps: {kinds}"
                yield Fault("calls", told, "many_calls" if len(ops) > wanted else "")
                return

    def judge_finding(self, found: Sequence[Any]) -> Iterator[Fault]:
        evidence = None
        for rank, one in enumerate(found):
            if not broken_run.well_formed(one):
                told = f"finding() returned {str(one)[:80]} on rank {rank}"
                yield Fault("finding", told, "nothing_returned" if one is None else "form")
                return
            evidence = evidence or broken_run.Evidence(
                launch(broken_run.SCRIPT, broken_run.RANKS, device="cpu")
            )
            told, mistake = evidence.against(*one)
            if mistake:
                yield Fault(
                    "finding", f"{tuple(one)} does not fit the broken run. In {told}", mistake
                )
                return

    def judge_gradient(self, case: Case, results: Sequence[Any]) -> Iterator[Fault]:
        import torch

        net = training.model(case.values["hidden"], torch.float64)
        right = training.reference(net, self.steps(case), self.rate(case))
        for number, (own, want) in enumerate(right):
            zeros = [rank for rank, local in enumerate(own) if not local.any()]
            moved = [rank for rank, found in enumerate(results) if found[number]["moved"]]
            if moved:
                told = f"step {number + 1}: rank {moved[0]}'s parameters were changed"
                yield Fault("gradient", told, "parameters_changed")
                return
            wrong = off(results, number, want)
            if wrong:
                got = [found[number]["gradient"] for found in results]
                who = "own gradient zero" if wrong[0] in zeros else "own gradient not zero"
                told = (
                    f"step {number + 1}: rank {wrong[0]} ({who}) has {values.told(got[wrong[0]])}, "
                    f"should be {values.told(want)}"
                )
                finite = values.is_finite(got)
                mistake = match(got, self.candidates(own, zeros)) if finite else "not_finite"
                yield Fault("gradient", told, mistake)
                return

    def candidates(
        self, own: Sequence[Any], zeros: Sequence[int]
    ) -> Iterator[tuple[str, Sequence[Any]]]:
        n, added = len(own), sum(own)
        mean = added / n
        yield "sum", [added] * n
        yield "twice", [mean / n] * n
        yield "always_three", [added / 3] * n
        yield "not_averaged", own
        if 0 < len(zeros) < n:
            yield "unmended", [added if rank in zeros else mean for rank in range(n)]
            yield "zeros_kept", [0 * mean if rank in zeros else mean for rank in range(n)]
            yield "fewer_ranks", [added / (n - len(zeros))] * n

    def failed(self, case: Case, run: Any, kind: str) -> str:
        zeros = {r for every in self.steps(case) for r, (x, _) in enumerate(every) if not x.any()}
        most = max(len(rank.calls) for rank in run)
        fewer = {rank.rank for rank in run if rank.finished and len(rank.calls) < most}
        return "skips_call" if fewer and fewer <= zeros else ""


EXERCISES = (Weighted(), FindTheBug())
