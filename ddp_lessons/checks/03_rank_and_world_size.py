"""The exercise of lesson 03: what a rank does, from its place on one machine or on two."""

from __future__ import annotations

import operator
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ddp_lessons.checks import values
from ddp_lessons.checks.exercise import Case, Exercise, Fault
from ddp_lessons.text import short
from ddp_lessons.worker import RECORDS, record

NAME = "ranks.txt"
MOST = 100  # bytes of a file, and samples of a shard, that are looked at


class TwoMachines(Exercise):
    key = "03_rank_and_world_size/two_machines"
    minutes = 8
    names = ("my_part",)
    requirements = {
        "device": "each rank names a GPU of its own machine, which no other rank names",
        "shards": "each sample is in the shard of one rank, and of no other",
        "sizes": "the sizes of the shards differ by at most 1",
        "file": f"rank 0 writes the number of all ranks into {NAME}, and no other rank writes",
    }
    mistakes = {
        "rank_as_device": "RANK counts through all machines, but the GPUs of each machine are "
        "counted from 0. On one machine the two numbers are the same, so nobody notices there.",
        "one_device": "Each rank of a machine needs a GPU of its own: the one with the rank's "
        "number on that machine.",
        "no_gpu_here": "A rank's GPU follows from its place. Say which one it is on a machine that "
        "has a GPU for each rank; whether this computer has any is not asked.",
        "number_only": 'A number alone is no name. A device is named "cuda:0", say.',
        "local_shard": "LOCAL_RANK starts again at 0 on every machine, so ranks with the same "
        "LOCAL_RANK take the same samples. Shards are dealt to all ranks: count with RANK.",
        "local_size": "The samples are dealt to LOCAL_WORLD_SIZE ranks here, the ranks of one "
        "machine. All ranks of all machines share them: WORLD_SIZE.",
        "everything": "Every rank has all the samples, so each sample is worked on by every rank.",
        "dropped": "A division that does not come out even leaves samples over. They belong to "
        "somebody, too.",
        "padded": "All shards have one size here, and the places that were left are filled with "
        "samples that another rank has already.",
        "uneven": "What a division leaves over is shared out, too: that many ranks take one sample "
        "more each.",
        "no_writer": "If your condition compares os.environ[...] with a number, it never holds: "
        'the environment is text, and "0" is not 0. And the file '
        "belongs into the folder that the function is given.",
        "all_write": "Each rank runs the same function. What is done once needs a condition that "
        "only one rank meets.",
        "writer_per_machine": "LOCAL_RANK is 0 once on every machine, so every machine writes. "
        "RANK is 0 once in all.",
        "other_writer": "By custom, what is done once is done by rank 0.",
        "other_file": f"The file's name is {NAME}, in the folder that the function was given, and "
        "it is the only one.",
        "local_count": "That is LOCAL_WORLD_SIZE, the number of ranks on one machine.",
    }
    timeout = 8

    def cases(self, seed: int) -> Sequence[Case]:
        more = seed % 5
        few, many = 8 + 3 * more, 10 + 4 * more  # neither can be dealt evenly
        return [
            Case(f"1 machine with 3 ranks, {few} samples", 3, {"n": few}),
            # torchrun takes about 5 seconds, and several times that on a busy computer.
            Case(f"2 machines with 2 ranks each, {many} samples", 4, {"n": many}, 2, 30),
        ]

    def on_rank(self, answer: Any, case: Case, bench: Any) -> Any:
        folder = Path(os.environ[RECORDS]).parent / "answer"
        folder.mkdir()
        n = case.values["n"]
        found = answer.my_part(n, folder)
        pair = isinstance(found, tuple | list) and len(found) == 2
        device, shard = found if pair else (None, None)
        shard = numbers(shard)
        if isinstance(shard, list):
            record("part", shard=shard, samples=n)  # for a picture
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        return {
            "pair": pair,
            "got": found,
            "device": device if device is None else str(device),
            "shard": shard,
            "files": {str(path.relative_to(folder)): head(path) for path in files},
        }

    def judge(self, case: Case, results: Sequence[Any], run: Any) -> Iterator[Fault]:
        for rank, one in enumerate(results):
            got, shard = one["got"], one["shard"]
            if not one["pair"]:
                told = f"rank {rank} returned {values.told(got)}, not (device, shard)"
                kind = "nothing_returned" if got is None else "wrong_type"
                yield Fault("device", told, kind)
                return
            if not isinstance(shard, list):
                told = f"rank {rank}: the shard is {values.told(shard)}, not a list of numbers"
                yield Fault("shards", told, "wrong_type")
                return
        yield from devices([one["device"] for one in results], run)
        yield from shards(case.values["n"], [one["shard"] for one in results], run)
        yield from written([one["files"] for one in results], run)


def numbers(shard: Any) -> Any:
    """The shard as a list of ints, if it holds whole numbers of any kind; else what it is."""
    if not isinstance(shard, Iterable) or isinstance(shard, str | bytes | dict):
        return shard
    try:
        return [operator.index(one) for one, _ in zip(shard, range(MOST), strict=False)]
    except TypeError:
        return f"a {type(shard).__name__} of other things"


def head(path: Path) -> str:
    return path.read_bytes()[:MOST].decode("utf-8", "replace")


def devices(names: Sequence[str], run: Any) -> Iterator[Fault]:
    """What is wrong with the devices, told by the first machine that shows it."""
    nodes = sorted({rank.node for rank in run})
    for node in nodes:
        there = [rank.rank for rank in run if rank.node == node]
        gpus = [f"cuda:{number}" for number in range(len(there))]
        taken = [names[rank] for rank in there]
        if sorted(taken) == gpus:
            continue
        which = f"machine {node}, with ranks {listed([str(rank) for rank in there])},"
        where = f"{which if len(nodes) > 1 else 'the machine'} has {listed(gpus)}"
        pairs = zip(there, taken, strict=True)
        took = ", ".join(f"rank {rank} names {name}" for rank, name in pairs)
        kind = ""
        if len(nodes) > 1 and list(names) == [f"cuda:{rank.rank}" for rank in run]:
            kind = "rank_as_device"
        elif all(str(name).isdigit() for name in taken):
            kind = "number_only"
        elif "cpu" in taken:
            kind = "no_gpu_here"
        elif len(set(taken)) == 1 and taken[0].startswith("cuda"):
            kind = "one_device"
        yield Fault("device", f"{where}; {took}", kind)
        return


def shards(n: int, parts: Sequence[list[int]], run: Any) -> Iterator[Fault]:
    """What is wrong with the shards of n samples, as a whole."""
    count = Counter(sample for part in parts for sample in part)
    lost = [sample for sample in range(n) if not count[sample]]
    twice = [sample for sample in range(n) if count[sample] > 1]
    foreign = sorted(set(count) - set(range(n)))
    kind = mistaken(n, parts, lost, twice, run)
    told = [f"rank {rank}: {values.told(part, 70)}" for rank, part in enumerate(parts)]
    what = [
        *([f"no rank has {these(lost)}"] if lost else []),
        *([f"more than once: {these(twice)}"] if twice else []),
        *([f"there is no sample {foreign[0]}"] if foreign else []),
    ]
    if what:
        yield Fault("shards", "\n".join([*told, "; ".join(what)]), kind)
    sizes = [len(part) for part in parts]
    if max(sizes) - min(sizes) > 1:
        told.append(f"the sizes are {', '.join(map(str, sizes))}")
        yield Fault("sizes", "\n".join(told), kind)


def mistaken(
    n: int, parts: Sequence[list[int]], lost: list[int], twice: list[int], run: Any
) -> str:
    """Which mistake gives these shards, "" if it cannot be told."""
    size, local = len(parts), sum(rank.node == 0 for rank in run)
    alike = all(
        sorted(parts[one.rank]) == sorted(parts[other.rank])
        for one in run
        for other in run
        if one.local_rank == other.local_rank
    )
    sizes = [len(part) for part in parts]
    if all(sorted(part) == list(range(n)) for part in parts):
        return "everything" if size > 1 else ""
    if local < size and alike and len(set(map(tuple, parts))) == local:
        return "local_shard"
    if local < size and list(parts) in dealt(n, size, local):
        return "local_size"
    if not twice and lost and lost == list(range(n - n % size, n)):
        return "dropped"
    if twice and not lost and set(sizes) == {-(-n // size)}:
        return "padded"
    return "uneven" if not twice and not lost and max(sizes) - min(sizes) > 1 else ""


def dealt(n: int, size: int, share: int) -> Iterator[list[list[int]]]:
    """What `size` ranks get who deal n samples as if there were `share` of them."""
    samples = list(range(n))
    yield [samples[rank::share] for rank in range(size)]
    for each in (n // share, -(-n // share)):
        yield [samples[rank * each : (rank + 1) * each] for rank in range(size)]


def written(files: Sequence[dict[str, str]], run: Any) -> Iterator[Fault]:
    """What is wrong with the files that each rank wrote."""
    writers = [rank for rank, mine in enumerate(files) if mine]
    size = len(files)
    local = sum(rank.node == 0 for rank in run)
    if not writers:
        yield Fault("file", "no rank wrote a file into its folder", "no_writer")
    elif writers != [0]:
        per_machine = local < size and writers == [r.rank for r in run if r.local_rank == 0]
        kind = "other_writer" if len(writers) == 1 else ""
        kind = "writer_per_machine" if per_machine else kind
        kind = "all_write" if len(writers) == size else kind
        ranks = listed([str(rank) for rank in writers])
        yield Fault("file", f"rank{'s' * (len(writers) > 1)} {ranks} wrote a file", kind)
    elif list(files[0]) != [NAME]:
        yield Fault("file", f"rank 0 wrote {listed(list(files[0]))}, not {NAME}", "other_file")
    elif files[0][NAME].strip() != str(size):
        kind = "local_count" if files[0][NAME].strip() == str(local) else ""
        told = f"{NAME} says {short(files[0][NAME].strip())!r}, should be {str(size)!r}"
        yield Fault("file", told, kind)


def these(samples: list[int]) -> str:
    return f"sample{'s' * (len(samples) > 1)} {values.told(samples, 40).strip('[]')}"


def listed(names: Sequence[str]) -> str:
    """Names as one says them: "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


EXERCISES = (TwoMachines(),)
