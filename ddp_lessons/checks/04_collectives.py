"""The exercise of lesson 04."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ddp_lessons.checks import values
from ddp_lessons.checks.exercise import Case, Exercise, Fault


class AllGather(Exercise):
    key = "04_collectives/all_gather"
    minutes = 10
    names = ("all_gather",)
    requirements = {
        "type": "every rank gets a list with one tensor for each rank, like x in shape and dtype",
        "result": "entry r of the list is rank r's x, on every rank: what torch's all_gather gives",
        "calls": "each rank makes one broadcast for each rank, and no other call",
    }
    mistakes = {
        "one_buffer": "`[buffer] * n` is one tensor listed n times: each broadcast writes over the "
        "one before. Make a new tensor for each entry.",
    }

    def cases(self, seed: int) -> Sequence[Case]:
        shapes = [(1, [2]), (2, [2]), (3, [2, 2]), (4, [1])]
        return [
            Case(
                f"{n} {'rank' if n == 1 else 'ranks'}, x of shape {shape}",
                n,
                {"shape": shape, "seed": seed},
            )
            for n, shape in shapes
        ]

    def inputs(self, case: Case, rank: int) -> Any:
        import torch

        made = torch.Generator().manual_seed(case.values["seed"] * 1000 + rank)
        return torch.randint(1, 100, case.values["shape"], generator=made)

    def on_rank(self, answer: Any, case: Case, bench: Any) -> Any:
        x = bench.keep(self.inputs(case, bench.rank))
        return answer.all_gather(x)

    def judge(self, case: Case, results: Sequence[Any], run: Any) -> Iterator[Fault]:
        import torch

        n = case.world_size
        wanted = [self.inputs(case, rank) for rank in range(n)]
        for rank, result in enumerate(results):
            if not isinstance(result, list):
                what = values.type_fault(result, wanted[0]) or "a tensor"
                kind = "nothing_returned" if result is None else "wrong_type"
                yield Fault("type", f"rank {rank} returned {what}, not a list", kind)
                return
            if len(result) != n:
                yield Fault(
                    "type", f"rank {rank} returned {len(result)} entries, not {n}", "wrong_type"
                )
                return
            for got, want in zip(result, wanted, strict=True):
                what = values.type_fault(got, want)
                if what:
                    yield Fault("type", f"rank {rank}: an entry is {what}", "wrong_type")
                    return
            if not all(torch.equal(a, b) for a, b in zip(result, wanted, strict=True)):
                alike = n > 1 and all(torch.equal(one, result[0]) for one in result)
                yield Fault(
                    "result",
                    f"rank {rank} returned {values.told(result)}, should be {values.told(wanted)}",
                    "one_buffer" if alike else "",
                )
                break
        for rank in run:
            ops = [call.op for call in rank.calls]
            if ops != ["broadcast"] * n:
                yield Fault(
                    "calls",
                    f"rank {rank.rank} called {', '.join(ops) or 'nothing'}",
                    "no_work" if not ops else "",
                )
                return


EXERCISES = (AllGather(),)
