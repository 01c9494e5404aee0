"""The exercise of lesson 04."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ddp_lessons.checks import values
from ddp_lessons.checks.exercise import Case, Exercise, Fault

if TYPE_CHECKING:
    from ddp_lessons.run import Call, Rank, Run

LATE = 0.3  # seconds: who does not wait for the last rank is gone by then

MOST = 100  # entries of a list that may be a result


class AllGather(Exercise):
    key = "04_collectives/all_gather"
    minutes = 10
    names = ("all_gather",)
    timeout = 6
    requirements = {
        "type": "every rank gets a list with a new tensor for each rank, like x in shape and dtype",
        "result": "entry r of the list is rank r's x, on every rank: what torch's all_gather gives",
        "calls": "each rank makes one broadcast for each rank, and no other call",
        "input": "x is what it was before",
    }
    mistakes = {
        "one_buffer": "All entries are one and the same tensor, so each broadcast wrote over the "
        "one before. `[buffer] * n` makes such a list. Make a new tensor for each entry.",
        "own_source": "Each rank named itself as the source, so nobody was there to receive. All "
        "ranks make the same broadcast with the same src, those who receive, too.",
        "input_kept": "The list holds the caller's own tensor, so what is done with x later "
        "happens to the result, too. Put in a copy, as torch's all_gather does.",
        "without_own": "A rank must also make the broadcast in which it is the source itself: "
        "without it, the others wait for its x. All ranks make the same broadcasts.",
        "one_source": "A broadcast gives everybody the tensor of one rank, its src. With the same "
        "src each time, the x of the other ranks never goes out.",
        "sent_what_came": "The tensor that a rank sent had been received into before, so what had "
        "come went out again. When a rank is the source, it must send its own x.",
        "sent_something_else": "A broadcast sends what stands in the tensor of the source. On the "
        "source, that must be x before the call is made.",
        "wrong_order": "The right tensors, in another order. Where a tensor belongs in the list "
        "depends on the rank that it came from, and on nothing else.",
        "from_return": "dist.broadcast() returns None. It writes into the tensor that it is given, "
        "so keep that tensor.",
        "entries": "The list has one entry for each rank, however many there are: ask "
        "dist.get_world_size().",
        "dtype": "torch.zeros() and torch.empty() make float32, whatever x is. A tensor like x is "
        "made by torch.empty_like(x) or x.clone().",
        "no_wait": "A call with async_op=True only starts. What it receives is there after wait() "
        "on the object that it returned.",
        "other_call": "The task is to do it with broadcasts alone. They need no barrier either: a "
        "broadcast is over on a rank when it has received.",
        "too_many": "The result is right, but some of these broadcasts bring nothing new: one for "
        "each rank is enough.",
        "keeps_state": "Something is kept from one call to the next: a list or a buffer outside of "
        "the function, or a default argument such as parts=[]. Make it anew in each call.",
    }

    def cases(self, seed: int) -> Sequence[Case]:
        return [
            self.case(seed, 1, [2], "int64"),
            self.case(seed, 2, [2], "int64"),
            self.case(seed, 3, [2, 2], "float32"),
            self.case(seed, 4, [1], "int64", late=True),
            self.case(seed, 4, [], "float64", times=2),
        ]

    def case(
        self, seed: int, n: int, shape: list[int], dtype: str, late: bool = False, times: int = 1
    ) -> Case:
        told = f"{n} rank{'' if n == 1 else 's'}, x of shape {shape}, {dtype}"
        told += f", rank {n - 1} a little late" if late else ""
        told += ", two calls one after the other" if times == 2 else ""
        what = {"seed": seed, "shape": shape, "dtype": dtype, "late": late, "times": times}
        return Case(told, n, what)

    def x(self, case: Case, rank: int, number: int) -> Any:
        """What a rank brings to a call: rank 0 numbers from 101 to 199, rank 1 from 201, ..."""
        import torch

        made = torch.Generator().manual_seed(case.values["seed"] * 1000 + rank * 10 + number)
        numbers = torch.randint(1, 100, case.values["shape"], generator=made) + 100 * (rank + 1)
        return numbers.to(getattr(torch, case.values["dtype"]))

    def on_rank(self, answer: Any, case: Case, bench: Any) -> Any:
        if case.values["late"] and bench.rank == bench.world_size - 1:
            time.sleep(LATE)
        returned, seen, inputs = [], [], []
        for number in range(case.values["times"]):
            x = bench.keep(self.x(case, bench.rank, number))
            returned.append(answer.all_gather(x))
            seen.append(copied(returned[-1]))  # at once: a broadcast may still be under way
            inputs.append(blocks([x])[0])
        return {
            "seen": seen,
            "places": places(returned[0]),
            "kept": [n for n, block in enumerate(blocks(returned[0])) if block == inputs[0]],
            "later": copied(returned[0]),
        }

    def judge(self, case: Case, results: Sequence[Any], run: Run) -> Iterator[Fault]:
        n = case.world_size
        for rank, result in enumerate(results):
            if isinstance(result, values.Other):
                yield Fault("type", f"rank {rank} returned {result}", "wrong_type")
                return
        for number in range(case.values["times"]):
            wanted = [self.x(case, rank, number) for rank in range(n)]
            lists = [result["seen"][number] for result in results]
            found = list(self.of_type(case, lists, wanted)) or list(
                self.of_result(results, lists, wanted, run)
            )
            if found and number:
                first = found[0]
                told = f"second call: {first.told}"
                yield Fault(first.requirement, told, "keeps_state")
            yield from found
            if found:
                return
        for rank, result in enumerate(results):
            before, after = result["seen"][0], result["later"]
            if case.values["times"] == 2 and not alike(before, after):
                told = f"rank {rank}: the second call turned the first list, {values.told(before)},"
                yield Fault("result", f"{told} into {values.told(after)}", "keeps_state")
                break
        for rank, result in enumerate(results):
            if n > 1 and result["kept"]:  # alone, there is nothing to copy into
                place = result["kept"][0]
                told = f"rank {rank}: entry {place} is x itself, or a view of it, should be a copy"
                yield Fault("type", told, "input_kept")
                break
        yield from self.of_calls(case, run)

    def of_type(self, case: Case, lists: Sequence[Any], wanted: Sequence[Any]) -> Iterator[Fault]:
        n = len(wanted)
        for rank, given in enumerate(lists):
            if not isinstance(given, list):
                what = values.type_fault(given, wanted[0]) or "a tensor"
                kind = "nothing_returned" if given is None else "wrong_type"
                yield Fault("type", f"rank {rank} returned {what}, should be a list", kind)
                return
            if len(given) != n:
                entries = "1 entry" if len(given) == 1 else f"{len(given)} entries"
                yield Fault("type", f"rank {rank} returned {entries}, should be {n}", "entries")
                return
            for place, (got, want) in enumerate(zip(given, wanted, strict=True)):
                if what := values.type_fault(got, want):
                    other = getattr(got, "dtype", want.dtype) != want.dtype
                    like = f"like x: {case.values['dtype']}, shape {case.values['shape']}"
                    told = f"rank {rank}: entry {place} is {what}, should be {like}"
                    mistake = "dtype" if other else "wrong_type"
                    yield Fault("type", told, "from_return" if got is None else mistake)
                    return

    def of_result(
        self, results: Sequence[Any], lists: Sequence[Any], wanted: Sequence[Any], run: Run
    ) -> Iterator[Fault]:
        bad = [rank for rank, given in enumerate(lists) if not alike(given, wanted)]
        if not bad:
            return
        rank, given = bad[0], lists[bad[0]]
        told = f"rank {rank} returned {values.told(given)}, should be {values.told(wanted)}"
        mistake = self.mistake(results, lists, wanted, run)
        if mistake == "no_wait":
            told += f"\nnobody waited for the broadcast of line {unfinished(run)[0].line}"
        if mistake == "one_source":
            told += f"\nevery broadcast had src={run[rank].calls[0].root}"
        yield Fault("result", told, mistake)

    def mistake(
        self, results: Sequence[Any], lists: Sequence[Any], wanted: Sequence[Any], run: Run
    ) -> str:
        """Which mistake the wrong lists come from, as far as they and the calls show it."""
        n = len(wanted)
        every = [call for rank in run for call in rank.calls]
        if unfinished(run):
            return "no_wait"
        if not every:
            return "no_work"
        if {call.op for call in every} != {"broadcast"}:
            return ""
        if n > 1 and len({call.root for call in every}) == 1:
            return "one_source"
        if n > 1 and all(len(set(result["places"])) == 1 for result in results):
            return "one_buffer"
        given = next(given for given in lists if not alike(given, wanted))
        if sorted(map(told, given)) == sorted(map(told, wanted)):
            return "wrong_order"
        if any([call.root for call in rank.calls] != list(range(n)) for rank in run):
            return ""
        if any(len(set(result["places"])) < n for result in results):
            return ""
        # Entry r, as rank r itself has it, is what rank r sent.
        sent = [told(lists[rank][rank]) for rank in range(n)]
        if any([told(one) for one in given] != sent for given in lists):
            return ""
        came = n > 1 and all(one == told(wanted[0]) for one in sent)
        return "sent_what_came" if came else "sent_something_else"

    def of_calls(self, case: Case, run: Run) -> Iterator[Fault]:
        n = case.world_size * case.values["times"]
        for rank in run:
            ops = Counter(call.op for call in rank.calls)
            if ops == {"broadcast": n} or (not ops and len(run) == 1):
                continue  # alone, there is nobody to send to
            mistake = "too_many" if ops["broadcast"] > n else ""
            mistake = "other_call" if set(ops) - {"broadcast"} else mistake
            made = ", ".join(f"{count} {op}" for op, count in ops.items())
            told = f"rank {rank.rank} called: {made or 'no function of torch.distributed itself'}; "
            yield Fault(
                "calls", f"{told}should be: {n} broadcast", mistake if ops else "other_call"
            )
            return

    def failed(self, case: Case, run: Run, kind: str) -> str:
        if unfinished([rank for rank in run if rank.finished]):
            return "no_wait"
        met = run.mismatches[0].calls if run.mismatches else ()
        if len(met) < 2 or {call.op for call in met} != {"broadcast"}:
            return ""
        if len({call.dtype for call in met}) > 1:
            return "dtype"
        if all(call.root == call.rank for call in met):
            return "own_source"
        return "without_own" if all(call.root != call.rank for call in met) else ""


def copied(result: Any) -> Any:
    """A list as it is now; anything else as it is."""
    import torch

    if type(result) is not list or len(result) > MOST:
        return result
    return [one.detach().clone() if type(one) is torch.Tensor else one for one in result]


def places(result: Any) -> list[int]:
    """Where in memory each entry begins."""
    return [one.data_ptr() if is_dense(one) else 0 for one in entries(result)]


def blocks(result: Any) -> list[int]:
    """Where the block of memory begins of which each entry is a view."""
    return [one.untyped_storage().data_ptr() if is_dense(one) else 0 for one in entries(result)]


def entries(result: Any) -> list[Any]:
    return result[:MOST] if type(result) is list else []


def is_dense(x: Any) -> bool:
    import torch

    return type(x) is torch.Tensor and x.layout == torch.strided


def told(x: Any) -> list[Any]:
    return x.reshape(-1).tolist()


def alike(given: Sequence[Any], wanted: Sequence[Any]) -> bool:
    import torch

    return len(given) == len(wanted) and all(map(torch.equal, given, wanted))


def unfinished(ranks: Iterable[Rank]) -> list[Call]:
    """The broadcasts that were started, and not waited for."""
    calls = [call for rank in ranks for call in rank.calls]
    return [call for call in calls if call.asynchronous and call.waited is None]


EXERCISES = (AllGather(),)
