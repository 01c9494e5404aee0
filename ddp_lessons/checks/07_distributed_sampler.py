"""The exercises of lesson 07."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from ddp_lessons.checks import counting, mistakes_07, values
from ddp_lessons.checks.exercise import Case, Exercise, Fault
from ddp_lessons.checks.sampling import Sampler


class ExactAccuracy(Exercise):
    key = "07_distributed_sampler/exact_accuracy"
    minutes = 12
    names = ("evaluate",)
    requirements = {
        "type": "every rank returns right and seen, int64 tensors with an entry for each class, "
        "and accuracy, a float",
        "counts": "right and seen are exact on every rank: each sample of the test set once",
        "accuracy": "accuracy is the share of all samples that are right",
    }
    mistakes = mistakes_07.ACCURACY
    timeout = 12

    def cases(self, seed: int) -> Sequence[Case]:
        rest = random.Random(seed)
        shapes = [  # ranks, samples, classes, batch, epoch (0: without shuffle)
            (2, 7, 2, 3, 0),
            (4, 10, 3, 2, 3),
            (4, 2, 2, 2, 0),
            (1, 5, 2, 2, 0),
            (2, 8, 2, 3, 2),
            (3, 3 * rest.randint(4, 9) + rest.randint(1, 2), 4, 3, rest.randint(1, 9)),
        ]
        return [_test_case(*shape, seed) for shape in shapes]

    def on_rank(self, answer: Any, case: Case, bench: Any) -> Any:
        import torch
        from torch.utils.data import DistributedSampler

        test = counting.made(case)
        sampler = DistributedSampler(range(len(test.labels)), shuffle=case.values["shuffle"])
        sampler.set_epoch(case.values["epoch"])
        batches = []
        for samples in test.batches(bench.rank):
            labels, predicted = (
                torch.tensor([whole[sample] for sample in samples], device=bench.device)
                for whole in (test.labels, test.predicted)
            )
            bench.keep(labels, "labels")
            bench.keep(predicted, "predicted")
            batches.append((labels, predicted))
        return answer.evaluate(batches, sampler, test.classes)

    def judge(self, case: Case, results: Sequence[Any], run: Any) -> Iterator[Fault]:
        test = counting.made(case)
        if fault := _not_as_promised(test, results, run):
            yield fault
            return
        found = [tuple(tuple(part.tolist()) for part in result[:2]) for result in results]
        for rank, counts in enumerate(found):
            if counts != test.exact:
                right, seen = map(list, counts)
                told = f"rank {rank}: right is {right}, seen is {seen}"
                wanted = f"should be {list(test.exact[0])} and {list(test.exact[1])}"
                ranks = "" if len(set(found)) > 1 or len(found) == 1 else " (all ranks alike)"
                name = counting.mistake_in_counts(test, found, bool(run.calls))
                yield Fault("counts", f"{told}{ranks}\n{wanted}", name)
                break
        for rank, result in enumerate(results):
            accuracy, want = float(result[2]), counting.rate(test.exact)
            if not abs(accuracy - want) <= 1e-6:
                right, seen = sum(test.exact[0]), sum(test.exact[1])
                told = f"rank {rank}: accuracy is {accuracy:.6g}, should be {want:.6g}"
                name = counting.mistake_in_accuracy(test, rank, accuracy)
                yield Fault("accuracy", f"{told}: {right} of {seen}", name)
                return

    def failed(self, case: Case, run: Any, kind: str) -> str:
        test = counting.made(case)
        callers = {rank.rank for rank in run if rank.calls}
        sizes = {call.shape for rank in run for call in rank.calls if call.dtype == "int64"}
        if kind in ("mismatch", "raises") and len(sizes) > 1:
            short = all(len(size) == 1 and size[0] <= test.classes for size in sizes)
            reduced = all("reduce" in call.op for rank in run for call in rank.calls)
            return "short_counts" if short and reduced else ""
        if kind not in ("waits", "mismatch", "left_early") or not callers:
            return ""
        if callers == {rank for rank in test.ranks if test.own(rank)} != set(test.ranks):
            return "empty_rank_skips"
        return "rank_0_alone" if len(callers) == 1 < len(run) else ""


def _test_case(ranks: int, length: int, classes: int, batch: int, epoch: int, seed: int) -> Case:
    facts = {"length": length, "classes": classes, "batch": batch, "epoch": epoch, "seed": seed}
    order = f"shuffled, epoch {epoch}" if epoch else "not shuffled"
    told = f"{ranks} rank{'s' * (ranks > 1)}, a test set of {length}, {order}"
    return Case(told, ranks, {**facts, "shuffle": epoch > 0})


def _not_as_promised(test: counting.Test, results: Sequence[Any], run: Any) -> Fault | None:
    """The first result of a wrong kind."""
    import torch

    counts = torch.zeros(test.classes, dtype=torch.int64)
    for rank, result in enumerate(results):
        if result is None:
            others = [_counts(other) for other in results]
            kind = "one_rank" if counting.has_one(test, others) else "nothing_returned"
            return Fault("type", f"rank {rank} returned None", kind)
        if not isinstance(result, tuple | list) or len(result) != 3:
            what = values.type_fault(result, counts) or "one tensor"
            if isinstance(result, tuple | list):
                what = f"{len(result)} values"
            return Fault("type", f"rank {rank} returned {what}, not three values", "wrong_type")
        for name, one in zip(("right", "seen"), result, strict=False):
            if what := values.type_fault(one, counts):
                reduced = one is None and any("all_reduce" in call.op for call in run[rank].calls)
                kind = "gave_back_none" if reduced else "wrong_type"
                if what.startswith("a tensor of shape") and one.dim() == 1:
                    kind = "short_counts" if len(one) < test.classes else kind
                want = f"not int64 of shape {[test.classes]}"
                return Fault("type", f"rank {rank}: {name} is {what}, {want}", kind)
        if fault := _not_a_rate(test, rank, result[2]):
            return fault
    return None


def _not_a_rate(test: counting.Test, rank: int, accuracy: Any) -> Fault | None:
    import torch

    if isinstance(accuracy, float):
        return None
    if isinstance(accuracy, torch.Tensor) and accuracy.numel() == 1:
        if accuracy.dtype.is_floating_point:
            told = f"rank {rank}: accuracy is a tensor that holds one float, not a float"
            return Fault("type", told, "wrong_type")
        accuracy = accuracy.item()
    if isinstance(accuracy, int) and not isinstance(accuracy, bool):
        told = f"rank {rank}: accuracy is {accuracy}, a whole number"
        right, seen = map(sum, test.exact)
        kind = "integer_division" if accuracy == right // seen else "wrong_type"
        return Fault("type", told, kind)
    what = values.type_fault(accuracy, torch.zeros(())) or "a tensor"
    return Fault("type", f"rank {rank}: accuracy is {what}, not a float", "wrong_type")


def _counts(result: Any) -> tuple | None:
    try:
        return tuple(tuple(part.tolist()) for part in result[:2])
    except (TypeError, AttributeError):
        return None


EXERCISES = (Sampler(), ExactAccuracy())
