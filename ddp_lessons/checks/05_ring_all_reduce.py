"""The exercise of lesson 05."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ddp_lessons.checks import values
from ddp_lessons.checks.exercise import Case, Exercise, Fault
from ddp_lessons.checks.ring import RIGHT, WRONG, State, by_rank, simulated

if TYPE_CHECKING:
    from ddp_lessons.run import Call, Run

LATE = 0.3  # seconds: who does not wait for the last rank is gone by then
SENDS, RECEIVES = ("send", "isend"), ("recv", "irecv")


class RingGather(Exercise):
    key = "05_ring_all_reduce/ring_gather"
    minutes = 15
    names = ("ring_gather",)
    timeout = 5
    requirements = {
        "steps": "N ranks take N - 1 steps, and call after_step() at the end of each",
        "chunks": "after each step every rank holds one more finished chunk, in its place",
        "sends": "in each step a rank sends one chunk to its right neighbour, and nothing else",
    }
    mistakes = {
        "all_send_first": "All ranks send before anybody receives: a deadlock in a circle. Start "
        "both at once, as the first half does, or let some ranks receive first.",
        "all_receive_first": "All ranks wait to receive before anybody sends. Start both at once, "
        "as the first half does, or let some ranks send first.",
        "off_by_one": "In step 1 a rank can send only what is finished on it: chunk r on rank r. "
        "Here the numbers of the chunks start elsewhere. Write down, for one rank and each step, "
        "which chunk must go and which one comes.",
        "first_half_again": "These are the chunks and the adding of the first half. Now chunk r is "
        "finished on rank r, so it goes first; and what comes replaces what is there.",
        "added": "The chunks are the right ones, but what came was added to the half-made sum that "
        "stood there. It is finished: it replaces what is there.",
        "own_again": "In step 1 a rank sends its own chunk; in the later steps it must pass on the "
        "one that came in the step before. Here it sent its own chunk again.",
        "counts_up": "The numbers of the chunks run the wrong way. What comes from the left "
        "neighbour is first its own chunk, then that of the rank to its left, and so on: down.",
        "wrong_place": "What came was written over a chunk that is needed. It has a place of its "
        "own: chunk k is chunk k on every rank.",
        "not_kept": "Nothing that came is in the caller's chunks. Write into the tensors, with "
        "copy_() say: a new entry in a list of your own does not change them.",
        "replaced": "The chunks are views of one tensor, listed in a tuple, which takes no other "
        "entry. Write into the tensor that is there: copy_() does.",
        "no_wait": "What isend and irecv start is done after wait(), and may never be done if the "
        "object that they return is thrown away. Keep it, and wait before the step ends.",
        "looked_early": "after_step() was called too early. A step ends when what came is in its "
        "place: after the wait(), and after the copy if there is one.",
        "looks": "Call after_step() at the end of each step: once in every turn of the loop. One "
        "rank alone takes no step.",
        "step_count": "N ranks take N - 1 steps: two ranks one, and one rank alone none. Look at "
        "where the loop begins and ends.",
        "wrong_way": "The chunks go around the other way. Each rank sends to its right neighbour "
        "and receives from its left one, as in the first half.",
        "not_the_ring": "In a ring a rank sends to its right neighbour and to nobody else, so what "
        "is for the others must be passed on.",
        "not_closed": "That is a row, not a ring: the right neighbour of the last rank is rank 0, "
        "(rank + 1) % n.",
        "whole_tensor": "The result is right, but all chunks went in every step. That is N times "
        "what is needed: the neighbour lacks one of them.",
        "too_much": "The result is right, but more was sent than the one chunk that the neighbour "
        "lacks in this step.",
        "padded": "The result is right, but every message was as long as the longest chunk. A send "
        "can have any size, as long as its receive has the same.",
        "sizes": "Chunks can differ in length, so what goes and what comes can, too. The tensor "
        "for what comes must be like the chunk that the left neighbour sends.",
        "empty_left_out": "An empty chunk was left out on one side only. Sends and receives pair "
        "by their order: let it make its rounds like the others, or leave out both ends.",
        "from_anybody": "A recv without src takes from anybody, and gloo cannot do that with an "
        "empty chunk. Name the left neighbour.",
        "dtype": "torch.zeros() and torch.empty() make float32, whatever the chunks are. "
        "torch.empty_like(chunk) makes a tensor like it.",
        "other_call": "Only sends and receives are allowed: send, recv, isend, irecv or a batch of "
        "them.",
    }

    def cases(self, seed: int) -> Sequence[Case]:
        return [
            self.case(seed, 2, 4),
            self.case(seed, 1, 3),  # what goes wrong alone is a raw error of gloo's
            self.case(seed, 3, 6, late=True),
            self.case(seed, 4, 6, "float32"),
            self.case(seed, 4, 3),
        ]

    def case(self, seed: int, n: int, size: int, dtype: str = "int64", late: bool = False) -> Case:
        lengths = [size // n + (k < size % n) for k in range(n)]
        told = f"{n} ranks, chunks of {', '.join(map(str, lengths))} numbers, {dtype}"
        told = told.replace("1 ranks, chunks", "1 rank, a chunk") if n == 1 else told
        told += f", rank {n - 1} a little late" if late else ""
        return Case(
            f"{told} (finished ones are over 1000)",
            n,
            {"seed": seed, "lengths": lengths, "dtype": dtype, "late": late},
        )

    def finished(self, case: Case) -> list[list[float]]:
        """The numbers of each chunk of the sum: 1001 to 1099, then 1101 to 1199, and so on."""
        return self.numbers(case, case.world_size, 1000)

    def start(self, case: Case) -> State:
        """What each rank holds at first: one chunk is finished, the others are under 1000."""
        finished = self.finished(case)
        state = [self.numbers(case, rank, 0) for rank in range(case.world_size)]
        for rank, chunks in enumerate(state):
            chunks[rank] = finished[rank]
        return state

    def numbers(self, case: Case, rank: int, base: int) -> list[list[float]]:
        import torch

        made = torch.Generator().manual_seed(case.values["seed"] * 1000 + rank)
        return [
            (torch.randint(1, 100, [length], generator=made) + base + 100 * chunk).tolist()
            for chunk, length in enumerate(case.values["lengths"])
        ]

    def on_rank(self, answer: Any, case: Case, bench: Any) -> Any:
        import torch

        dtype = getattr(torch, case.values["dtype"])
        x = torch.tensor(sum(self.start(case)[bench.rank], []), dtype=dtype)
        if case.values["late"] and bench.rank == bench.world_size - 1:
            time.sleep(LATE)
        chunks, seen, when = x.tensor_split(bench.world_size), [], []

        def after_step(*_: Any) -> None:
            when.append(time.monotonic())
            seen.append([chunk.tolist() for chunk in chunks])

        answer.ring_gather(chunks, after_step)
        return {"seen": seen, "when": when, "end": [chunk.tolist() for chunk in chunks]}

    def judge(self, case: Case, results: Sequence[Any], run: Run) -> Iterator[Fault]:
        yield from self.of_steps(case, results, run)
        if wrong := self.of_chunks(case, results):
            yield Fault("chunks", wrong, self.mistake(case, results, run))
        elif early := looked_early(results, run):
            yield Fault("chunks", early, "looked_early")
        yield from self.of_sends(case, results, run)

    def of_steps(self, case: Case, results: Sequence[Any], run: Run) -> Iterator[Fault]:
        want = case.world_size - 1
        for rank, result in enumerate(results):
            looks, messages = len(result["seen"]), len(sends(run[rank].calls))
            if looks == want:
                continue
            told = f"rank {rank}: calls of after_step(): {looks}, should be {want}; "
            told += f"messages sent: {messages}"
            if messages == want:
                mistake = "looks"
            elif looks == messages:
                mistake = "step_count"
            else:
                mistake = self.mistake(case, results, run)
            yield Fault("steps", told, mistake)
            return

    def of_chunks(self, case: Case, results: Sequence[Any]) -> str:
        """The first chunk that is not what it should be, "" if all are."""
        n, finished = case.world_size, self.finished(case)
        for step in range(1, n):
            for rank, result in enumerate(results):
                state = result["seen"][step - 1] if len(result["seen"]) >= step else finished
                for chunk in [(rank - back) % n for back in range(step + 1)]:
                    if state[chunk] != finished[chunk]:
                        told = f"after step {step} rank {rank} holds {values.told(state)}"
                        return f"{told}\nchunk {chunk} should be {values.told(finished[chunk])}"
        for rank, result in enumerate(results):
            if result["end"] != finished:
                told = f"in the end rank {rank} holds {values.told(result['end'])}"
                return f"{told}\nshould be {values.told(finished)}"
        return ""

    def mistake(self, case: Case, results: Sequence[Any], run: Run) -> str:
        """Which mistake wrong chunks come from, as far as they and the calls show it."""
        n, start = case.world_size, self.start(case)
        every = [call for rank in run for call in rank.calls]
        if not every:
            return "no_work" if n > 1 else ""
        if any(call.op not in SENDS + RECEIVES for call in every):
            return "other_call"
        if unwaited(every):
            return "no_wait"
        peers = [{call.peer for call in sends(rank.calls)} for rank in run]
        if not peers[-1] and all(peers[:-1]):
            return "not_closed"
        if n > 2 and peers == [{(rank - 1) % n} for rank in range(n)]:
            return "wrong_way"
        if any(one - {(rank + 1) % n} for rank, one in enumerate(peers)):
            return "not_the_ring"
        seen = [result["seen"] for result in results]
        right = simulated(start, RIGHT)
        whole = all(result["end"] == self.finished(case) for result in results)
        if looked_early(results, run) or (whole and seen == by_rank([start, *right[:-1]])):
            return "looked_early"
        found = (name for name, rules in WRONG if seen == by_rank(simulated(start, rules)))
        return next(found, "")

    def of_sends(self, case: Case, results: Sequence[Any], run: Run) -> Iterator[Fault]:
        import torch

        n, size = case.world_size, getattr(torch, case.values["dtype"]).itemsize
        lengths = [size * length for length in case.values["lengths"]]
        for rank, result in enumerate(results):
            calls, right = run[rank].calls, (rank + 1) % n
            if others := sorted({call.op for call in calls} - {*SENDS, *RECEIVES}):
                yield Fault("sends", f"rank {rank} called {', '.join(others)}", "other_call")
                return
            ends = [0.0, *result["when"][:-1], float("inf")]
            for step in range(1, n if len(ends) == n else 1):
                made = [c for c in sends(calls) if ends[step - 1] < c.called <= ends[step]]
                told = f"in step {step} rank {rank} sent"
                for call in made:
                    if call.peer != right:
                        told += f" {call.bytes} bytes to rank {call.peer}, not to rank {right}"
                        yield Fault("sends", told, "not_the_ring")
                        return
                sent, want = sum(call.bytes for call in made), lengths[(rank - step + 1) % n]
                if sent != want:
                    mistake = "too_much" if sent > want else ""
                    mistake = "padded" if sent == max(lengths) else mistake
                    mistake = "whole_tensor" if sent == sum(lengths) else mistake
                    yield Fault("sends", f"{told} {sent} bytes, should be {want}", mistake)
                    return

    def failed(self, case: Case, run: Run, kind: str) -> str:
        calls = [list(rank.calls) for rank in run]
        every = sum(calls, [])
        if any(unwaited(rank.calls) for rank in run if rank.finished) or thrown_away(calls):
            return "no_wait"
        if any(call.peer == len(run) for call in sends(every)):
            return "not_closed"
        if kind == "waits":
            stand = [[call.op for call in made if call.end is None] for made in calls]
            if all(ops and set(ops) <= set(SENDS) for ops in stand):
                return "all_send_first"
            if all(ops and set(ops) <= set(RECEIVES) for ops in stand):
                return "all_receive_first"
        if kind == "mismatch":
            met = run.mismatches[0].calls if run.mismatches else ()
            if len(met) == 2 and {call.op for call in met} <= {*SENDS, *RECEIVES}:
                if met[0].dtype != met[1].dtype:
                    return "dtype"
                one_is_empty = 0 in case.values["lengths"] and 0 in [call.bytes for call in met]
                return "empty_left_out" if one_is_empty else "sizes"
        if kind == "raises":
            failures = [rank.failure for rank in run if rank.failure]
            if any("does not support item assignment" in one.message for one in failures):
                return "replaced"
            if len(run) == 1 and any(call.peer == 0 for call in calls[0]):
                return "step_count"
            if any(call.raised and call.op == "recv" and call.peer is None for call in every):
                return "from_anybody"
        return ""


def sends(calls: Sequence[Call]) -> list[Call]:
    return [call for call in calls if call.op in SENDS]


def unwaited(calls: Sequence[Call]) -> bool:
    """Whether a receive was started, and its Work not waited for."""
    return any(call.op == "irecv" and call.waited is None for call in calls)


def thrown_away(calls: Sequence[Sequence[Call]]) -> bool:
    """Whether a rank got nothing in a recv, until it stopped or its peer was gone, although an
    isend to it was started, and nobody waits for that. `calls`: those of each rank."""

    def has_come(call: Call) -> bool:
        return call.end is not None and not call.raised

    for rank, mine in enumerate(calls):
        for call in mine:
            if call.op != "recv" or has_come(call) or call.peer is None:
                continue
            came = [c for c in mine if c.op in RECEIVES and c.peer == call.peer and has_come(c)]
            sent = [c for c in sends(calls[call.peer]) if c.peer == rank]
            if len(sent) > len(came) and sent[len(came)].op == "isend":
                return sent[len(came)].waited is None
    return False


def looked_early(results: Sequence[Any], run: Run) -> str:
    """Which rank called after_step() between a receive and its wait, "" if none did."""
    for rank, result in enumerate(results):
        for step, when in enumerate(result["when"], 1):
            for call in run[rank].calls:
                if call.op == "irecv" and call.waited and call.called < when < call.waited:
                    return f"rank {rank} called after_step() in step {step}, and wait() after that"
    return ""


EXERCISES = (RingGather(),)
