"""The exercises of lesson 10."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from ddp_lessons.checks import stopping, values
from ddp_lessons.checks.exercise import Case, Exercise, Fault
from ddp_lessons.checks.port import Port
from ddp_lessons.worker import record

RETURNED = "returned"  # the name of a record


class StopTogether(Exercise):
    key = "10_training_template/stop_together"
    minutes = 10
    names = ("train",)
    timeout = 6
    requirements = {
        "together": "all ranks stop after the same epoch",
        "stop": "that is the first epoch that ends `patience` epochs in a row without a new lowest "
        "loss over all samples, or the last of `epochs`",
        "returned": "every rank returns how many epochs ran, and the lowest loss",
        "each": "each epoch trains and then validates, once, on every rank",
    }
    mistakes = {
        "local": "Each rank decides by the loss of its own shard, and the first to stop leaves the "
        "others waiting in the next epoch. A decision must come from numbers that are the same "
        "on all ranks.",
        "rank_0_alone": "Rank 0 has stopped, and nobody has told the others. They need the "
        "decision too, or the numbers that it is made from.",
        "one_shard": "All ranks follow the loss of one rank's shard. The loss that counts is that "
        "of all ranks' samples.",
        "any_votes": "Each rank votes by its own loss, and one vote stops all. They stop together, "
        "and too early or too late: the loss of all samples is not asked.",
        "all_vote": "Each rank votes by its own loss, and all must agree. They stop together, but "
        "the loss of all samples is not asked.",
        "mean_of_means": "That is the mean of the ranks' means. The ranks have different numbers "
        "of samples: sum losses and counts, and divide at the end.",
        "sum": "That is the sum of the losses. Divide by the number of all ranks' samples.",
        "one_late": "One epoch too many. With patience 2, the second epoch in a row without a new "
        "lowest loss is the last.",
        "one_early": "One epoch too few. An epoch with a new lowest loss, the first one too, is "
        "not one of those that patience counts.",
        "not_reset": "The epochs without a new lowest loss are counted since the start. A new "
        "lowest loss sets the count back to 0.",
        "previous": "Each loss is compared with the one before. Compare it with the lowest so far.",
        "tie": "An equal loss counts as a new lowest one here. It must be lower.",
        "limit": "There is a second reason to stop: `epochs` epochs have run.",
        "goes_on": "The number is right, but training went on after it. Leave the loop.",
        "index": "That is the last epoch's number, counted from 0. The number of epochs is one "
        "more.",
        "last_loss": "That is the loss of the last epoch. Return the lowest one.",
        "own_loss": "That is the lowest loss of this rank's own shard.",
        "skips": "Every rank has a shard of its own to validate.",
    }

    def cases(self, seed: int) -> Sequence[Case]:
        draw = random.Random(seed)
        known = [
            (1, [2], 2, True),
            (2, [1, 3], 2, True),
            (3, [2, 1, 3], 2, True),
            (2, [2, 1], 3, False),
            (4, [1, 2, 3, 2], 3, True),
        ]
        return [self.case(draw, *one) for one in known]

    def case(
        self, draw: random.Random, n: int, counts: list[int], patience: int, stops: bool
    ) -> Case:
        sums, epochs = stopping.losses(draw, counts, patience, stops)
        told = f"{n} {'rank' if n == 1 else 'ranks'}, patience {patience}, at most {epochs} epochs"
        how = {"counts": counts, "sums": sums, "patience": patience, "epochs": epochs}
        return Case(told, n, how)

    def on_rank(self, answer: Any, case: Case, bench: Any) -> Any:
        import torch
        import torch.distributed as dist

        how, events = case.values, []

        def train_epoch() -> None:
            events.append("train")
            record("epoch")
            dist.all_reduce(torch.zeros(1))  # what a backward with DDP would do

        def validate() -> tuple[float, int]:
            events.append("validate")
            epoch = max(events.count("train") - 1, 0)
            more = max(0, epoch - len(how["sums"]) + 1)  # worse and worse: every loop ends
            total = how["sums"][min(epoch, len(how["sums"]) - 1)][bench.rank] + 100 * more
            return float(total), how["counts"][bench.rank]

        told = answer.train(train_epoch, validate, how["epochs"], how["patience"])
        record(RETURNED)
        return {"events": events, "told": told}

    def judge(self, case: Case, results: Sequence[Any], run: Any) -> Iterator[Fault]:
        plan = stopping.Plan.of(case.values)
        trained = [one["events"].count("train") for one in results]
        for rank, one in enumerate(results):
            told, where = one["told"], f"rank {rank} returned {values.told(one['told'])}"
            if not (isinstance(told, tuple | list) and len(told) == 2):
                mistake = "nothing_returned" if told is None else "wrong_type"
                yield Fault("returned", f"{where}, not two values", mistake)
                return
            if type(told[0]) is not int or type(told[1]) not in (int, float):
                yield Fault("returned", f"{where}, not an int and a float", "wrong_type")
                return
            validated = one["events"].count("validate")
            if validated < trained[rank] and not validated:
                told = f"rank {rank} trained {trained[rank]} epochs and validated none of them"
                yield Fault("each", told, "skips")
                return
        if len(set(trained)) > 1:
            told = ", ".join(f"rank {rank} ran {n}" for rank, n in enumerate(trained))
            yield Fault("together", f"epochs: {told}", "")
            return
        yield from self.judge_stop(plan, trained[0], [one["told"] for one in results])
        for rank, one in enumerate(results):
            if one["events"] != ["train", "validate"] * plan.ran:
                told = f"rank {rank}: in order: {' '.join(one['events'])}"
                yield Fault("each", told, "")
                return

    def judge_stop(self, plan: stopping.Plan, ran: int, told: list[Any]) -> Iterator[Fault]:
        if ran != plan.ran:
            losses = ", ".join(f"{loss:.2f}" for loss in plan.all[:ran])
            text = f"{ran} epochs ran, should be {plan.ran}\nloss of all samples by epoch: {losses}"
            if ran > plan.epochs:
                mistake = "limit"
            elif told[0][0] == plan.ran:
                mistake = "goes_on"
            else:
                mistake = plan.mistake(ran)
            yield Fault("stop", text, mistake)
            return
        for rank, (number, best) in enumerate(told):
            if number != ran:
                text = f"rank {rank} returned {number} epochs, and {ran} had run"
                yield Fault("returned", text, "index" if number == ran - 1 else "")
                return
            if not stopping.near(best, plan.best):
                text = f"rank {rank} returned a lowest loss of {best:.4f}, should be "
                text += f"{plan.best:.4f}"
                yield Fault("returned", text, plan.wrong_best(rank, best))
                return

    def failed(self, case: Case, run: Any, kind: str) -> str:
        begun = [sum(one.name == "epoch" for one in rank.records) for rank in run]
        returned = [rank.rank for rank in run if any(one.name == RETURNED for one in rank.records)]
        # Or they have left the loop, and wait after it.
        gone = returned or [rank for rank, n in enumerate(begun) if n < max(begun)]
        if not gone or len(gone) == len(run) or max(begun) <= min(begun[rank] for rank in gone):
            return ""
        own = stopping.Plan.of(case.values).own
        left = all(begun[rank] == own[rank] for rank in gone)
        # Who is still there has not come past the epoch after which its own loss would stop it.
        still = all(begun[r] <= own[r] for r in range(len(run)) if r not in gone)
        if left and still:
            return "local"
        return "rank_0_alone" if returned == [0] else ""


EXERCISES = (StopTogether(), Port())
