"""How a port to many ranks strays from the script: the mistakes, from what the ranks did."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from ddp_lessons.checks import values
from ddp_lessons.checks.porting import Script
from ddp_lessons.checks.stopping import near


def shards(n: int, script: Script, results: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """What is wrong with the samples that went through the model: in words, and the mistake."""
    steps = by_step(results)
    want = script.batches[script.start : script.end]
    for number in range(max(len(want), len(steps))):
        parts = steps[number] if number < len(steps) else [[]] * n
        wanted = want[number] if number < len(want) else []
        if sorted(sum(parts, [])) == sorted(wanted) and len({*map(len, parts)}) == 1:
            continue
        at = script.start + number + 1
        told = f"step {at}: " + ", ".join(
            f"{len(part)} samples on rank {rank}, {part}" for rank, part in enumerate(parts)
        )
        told += f"\none process has {len(wanted)} samples in this step: {sorted(wanted)}"
        yield told, usual(n, script, number, parts)
        return


def usual(n: int, script: Script, number: int, parts: Sequence[list[int]]) -> str:
    """The mistake that gives the ranks these samples, in the first step where they are wrong."""
    at, union = script.start + number, sorted(sum(parts, []))

    def is_step(other: int) -> bool:
        inside = 0 <= other < len(script.batches) and other != at
        return inside and union == sorted(script.batches[other])

    sizes = {len(part) for part in parts}
    wanted = len(script.batches[at]) if at < script.end else 0
    if n > 1 and parts[0] and all(set(part) == set(parts[0]) for part in parts):
        return "no_sampler"
    if n > 1 and sizes == {script.batch} and len(set(union)) == len(union):
        return "global_batch"
    if not union:
        return "too_few"
    if not wanted:
        return "too_many"
    if at >= script.per_epoch and is_step(at % script.per_epoch):
        return "no_set_epoch"
    if script.start and is_step(number):
        return "starts_over"
    if script.start and is_step(script.start // script.per_epoch * script.per_epoch + number):
        return "restarts_epoch"
    if wanted < script.batch and is_step(at + 1):
        return "drop_last"
    first = at % script.per_epoch * script.batch
    if union == list(range(first, min(first + script.batch, script.number))):
        return "no_shuffle"
    return ""


def by_step(results: Sequence[Any]) -> list[list[list[int]]]:
    """The samples of each step, by rank; none where a rank made fewer steps than others."""
    steps = itertools.zip_longest(*(one["trained"] for one in results), fillvalue=[])
    return [list(parts) for parts in steps]


def strayed(script: Script, results: Sequence[Any]) -> str:
    """The mistake that gives the ranks the parameters that they have, "" if none does."""
    got = [one["parameters"] for one in results]
    parts = by_step(results)
    ways = [("own", ""), ("divided_again", ""), ("mean", "momentum"), ("mean", "rank_0_loads")]
    for how, lost in ways:
        would = script.run(parts, how, lost).parameters
        if all(values.same(a, b) for a, b in zip(got, would, strict=True)):
            return "not_averaged" if how == "own" else lost or how
    return ""


def wrong_loss(script: Script, results: Sequence[Any], rank: int) -> str:
    """The mistake that makes a rank return these losses."""
    import torch

    parts = by_step(results)
    every = torch.tensor(script.run(parts).losses, dtype=torch.float64)
    told = torch.tensor(results[rank]["told"][0], dtype=torch.float64)
    if values.same(told, every.sum(1)):
        return "loss_sum"
    of_one = any(values.same(told, every[:, other]) for other in range(len(results)))
    return "own_loss" if of_one else ""


def wrong_error(script: Script, results: Sequence[Any], rank: int) -> str:
    """The mistake that makes a rank return this error, from the samples that each one tested."""
    tested = [one["tested"] for one in results]
    if any(not of or min(of) < 0 for of in tested):
        return ""
    told = results[rank]["told"][1]
    means = [script.errors(of).mean().item() for of in tested]
    if any(near(told, mean) for mean in means):
        return "one_shard"
    every = sum(tested, [])
    twice = len(set(every)) < len(every)
    if twice and near(told, script.errors(every).mean().item()):
        return "padded"
    return "mean_of_means" if near(told, sum(means) / len(means)) else ""
