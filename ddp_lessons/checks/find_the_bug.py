"""The second exercise of lesson 06."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ddp_lessons.checks import broken_run, training, values
from ddp_lessons.checks.exercise import Case, Exercise, Fault
from ddp_lessons.launcher import launch


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
        return broken_run.RATE if case.values["zeros"] is None else training.RATE

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
            wrong = training.off(results, number, want)
            if wrong:
                got = [found[number]["gradient"] for found in results]
                who = "own gradient zero" if wrong[0] in zeros else "own gradient not zero"
                told = (
                    f"step {number + 1}: rank {wrong[0]} ({who}) has {values.told(got[wrong[0]])}, "
                    f"should be {values.told(want)}"
                )
                finite = values.is_finite(got)
                mistake = (
                    training.match(got, self.candidates(own, zeros)) if finite else "not_finite"
                )
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
