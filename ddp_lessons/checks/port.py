"""The second exercise of lesson 10."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ddp_lessons.checks import port_mistakes, porting, stopping, values
from ddp_lessons.checks.exercise import Case, Exercise, Fault
from ddp_lessons.worker import RECORDS


class Port(Exercise):
    key = "10_training_template/port"
    minutes = 30
    names = ("train",)
    timeout = 6
    may_change = frozenset({"torch's random numbers (the global generator)"})
    requirements = {
        "samples": "each step has the samples of the script's step, each of them on one rank",
        "model": "every rank ends with the script's parameters, also when it goes on from a "
        "checkpoint",
        "metrics": "every rank returns the script's losses and error",
        "files": "rank 0 alone writes, and the script could go on from its checkpoint",
    }
    mistakes = {
        "no_sampler": "Every rank works on the same samples, so more ranks save no time. A "
        "sampler deals each rank its own part.",
        "global_batch": "Each rank takes `batch` samples, so a step has `batch` times the number "
        "of ranks. `batch` is that of all ranks together: what is one rank's share of it?",
        "no_set_epoch": "These are the samples of the first epoch again, in the same order. The "
        "sampler must be told the epoch.",
        "no_shuffle": "These samples are in the order of the data set. The sampler has to shuffle.",
        "drop_last": "The last batch of an epoch is smaller, and it was left out.",
        "starts_over": "The checkpoint was there, and training began at step 1. Each rank must "
        "read it, and go on at its step.",
        "restarts_epoch": "The checkpoint was made in the middle of an epoch, and the epoch began "
        "anew. The steps that it had done must be passed over.",
        "too_few": "No rank made this step. Count steps, not samples or batches of one rank, and "
        "train up to `stop_after` or the end of the last epoch.",
        "too_many": "Training went on after its end: after `stop_after` steps, or `epochs` epochs.",
        "not_averaged": "Each rank has made its steps with its own gradient. The forward must go "
        "through the DDP model, or nobody averages.",
        "divided_again": "The gradient was divided by the number of ranks twice. DDP has taken "
        "the mean already.",
        "momentum": "The model went on from the checkpoint, and the optimizer without its "
        "momentum.",
        "rank_0_loads": "Rank 0 went on with its momentum, and the other ranks without. DDP sends "
        "rank 0's model to all, and no optimizer: each rank must load the checkpoint.",
        "own_loss": "That is the loss of this rank's own samples. The script's loss is that of the "
        "whole batch: the mean over the ranks.",
        "loss_sum": "That is the sum of the ranks' losses. Each is a mean over as many samples: "
        "divide by the number of ranks.",
        "one_shard": "That is the error on the test samples of one rank. Add up sums and counts "
        "over all ranks.",
        "mean_of_means": "That is the mean of the ranks' errors. The ranks have different numbers "
        "of test samples: add up sums and counts, and divide at the end.",
        "padded": "Some test samples were counted twice: DistributedSampler repeats samples where "
        "the number does not divide.",
        "all_write": "Each rank runs this function. What is written once needs a condition.",
        "wrapper": "The names of a DDP model begin with `module.`, and the script's do not. Save "
        "and load the inner model.",
        "no_checkpoint": "At its end, the function leaves a checkpoint, as the script does.",
    }

    def cases(self, seed: int) -> Sequence[Case]:
        known = [  # ranks, samples, test samples, epochs, start, stop after
            (2, 40, 7, 2, 0, 99),
            (2, 40, 7, 4, 6, 11),
            (1, 40, 5, 3, 5, 99),
            (3, 42, 10, 2, 0, 7),
            (4, 40, 9, 3, 5, 99),
        ]
        return [self.case(seed * 100 + 2 * number, *one) for number, one in enumerate(known)]

    def case(
        self, seed: int, n: int, number: int, tests: int, epochs: int, start: int, stop: int
    ) -> Case:
        ranks = "1 rank" if n == 1 else f"{n} ranks"
        told = f"{ranks}, {number} samples, batch 12, {epochs} epochs, stop_after {stop}"
        told += f", from a checkpoint of step {start}" if start else ""
        how = {"seed": seed, "number": number, "tests": tests, "batch": 12, "epochs": epochs}
        return Case(told, n, how | {"start": start, "stop_after": stop})

    def on_rank(self, answer: Any, case: Case, bench: Any) -> Any:
        folder = Path(os.environ[RECORDS]).parent / "answer"  # each rank has its own
        folder.mkdir()
        seen = porting.watched(answer.train, porting.Script.of(case.values), folder)
        gc.collect()  # a DDP model must be gone before its process group is
        return seen

    def judge(self, case: Case, results: Sequence[Any], run: Any) -> Iterator[Fault]:
        script, n = porting.Script.of(case.values), case.world_size
        for told, mistake in port_mistakes.shards(n, script, results):
            yield Fault("samples", told, mistake)
            return
        faults = [*self.model(script, results)] or [*self.metrics(script, results)]
        yield from faults or self.files(script, results)

    def model(self, script: porting.Script, results: Sequence[Any]) -> Iterator[Fault]:
        want = script.right.parameters[0]
        got = [one["parameters"] for one in results]
        for rank, one in enumerate(got):
            if not values.same(one, want):
                told = f"rank {rank}: the parameters are {values.told(one)}, should be "
                yield Fault(
                    "model", told + values.told(want), port_mistakes.strayed(script, results)
                )
                return

    def metrics(self, script: porting.Script, results: Sequence[Any]) -> Iterator[Fault]:
        import torch

        want = [losses[0] for losses in script.right.losses]
        for rank, one in enumerate(results):
            told = one["told"]
            if not (isinstance(told, tuple | list) and len(told) == 2):
                mistake = "nothing_returned" if told is None else "wrong_type"
                text = f"rank {rank} returned {values.told(told)}, not (losses, error)"
                yield Fault("metrics", text, mistake)
                return
            losses, error = told
            numbers = isinstance(losses, list | tuple) and all(type(x) is float for x in losses)
            if not numbers or type(error) is not float:
                text = f"rank {rank} returned {values.told(told)}, not floats in a list and a float"
                yield Fault("metrics", text, "wrong_type")
                return
            if len(losses) != len(want):
                text = f"rank {rank} returned {len(losses)} losses of {len(want)} steps"
                yield Fault("metrics", text, "")
                return
            tensor, wanted = (torch.tensor(x, dtype=torch.float64) for x in (losses, want))
            if not values.same(tensor, wanted):
                text = f"rank {rank} returned the losses {values.told(tensor)}, should be "
                mistake = port_mistakes.wrong_loss(script, results, rank)
                yield Fault("metrics", text + values.told(wanted), mistake)
                return
            right = script.errors(range(script.tests)).mean().item()
            if not stopping.near(error, right):
                text = f"rank {rank} returned an error of {error:.4f}, should be {right:.4f}\n"
                text += f"{len(one['tested'])} test samples went through its model"
                yield Fault("metrics", text, port_mistakes.wrong_error(script, results, rank))
                return

    def files(self, script: porting.Script, results: Sequence[Any]) -> Iterator[Fault]:
        for rank, one in enumerate(results):
            if rank and one["written"]:
                text = f"rank {rank} wrote {', '.join(one['written'][:3])}"
                yield Fault("files", text, "all_write" if results[0]["written"] else "")
                return
        state = results[0]["saved"]
        if porting.CHECKPOINT not in results[0]["written"]:
            text = f"rank 0 did not write {porting.CHECKPOINT}"
            yield Fault("files", text, "no_checkpoint")
            return
        if "fault" in state:
            yield Fault("files", state["fault"], "wrapper" if "module." in state["fault"] else "")
            return
        wanted = script.right
        momentum = porting.momentum(wanted)
        pairs = {"model": wanted.parameters[0], "momentum": momentum}
        for name, want in pairs.items():
            if values.type_fault(state[name], want) or not values.same(state[name], want):
                text = f"{name} in {porting.CHECKPOINT} is {values.told(state[name])}, should be "
                yield Fault("files", text + values.told(want), "")
                return
        if state["step"] != script.end:
            text = f"step in {porting.CHECKPOINT} is {values.told(state['step'])}, should be "
            yield Fault("files", f"{text}{script.end}", "")

    def failed(self, case: Case, run: Any, kind: str) -> str:
        failures = [rank.failure for rank in run if rank.failure]
        names = "Missing key(s) in state_dict"
        wrapped = any(names in one.message and "module." in one.message for one in failures)
        return "wrapper" if wrapped else ""
