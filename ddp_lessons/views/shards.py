"""Which rank gets which sample: shards from records or from the sampler itself, as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ddp_lessons.run import Run


@dataclass(frozen=True)
class Cell:
    """One place in a rank's shard. again: a cell before it has the same sample."""

    rank: int
    place: int
    sample: int
    again: bool


@dataclass(frozen=True)
class Shards:
    """What each rank gets in one epoch, of the samples 0 to `samples` - 1."""

    samples: int
    ranks: Sequence[Sequence[int]]

    @property
    def cells(self) -> list[Cell]:
        """The first places of all ranks in rank order, then the second ones, and so on: the order
        in which samples are dealt."""
        found, dealt = [], set()
        for place in range(max(map(len, self.ranks), default=0)):
            for rank, shard in enumerate(self.ranks):
                if place < len(shard):
                    found.append(Cell(rank, place, shard[place], shard[place] in dealt))
                    dealt.add(shard[place])
        return found

    @property
    def left_out(self) -> list[int]:
        """The samples that no rank gets."""
        return sorted(set(range(self.samples)).difference(*self.ranks))


def sampled(length: int, world_size: int, *, shuffle: bool, drop_last: bool, epoch: int) -> Shards:
    """What torch's DistributedSampler gives each rank of a dataset of `length` samples."""
    from torch.utils.data import DistributedSampler

    ranks = []
    for rank in range(world_size):
        sampler = DistributedSampler(
            range(length), world_size, rank, shuffle=shuffle, drop_last=drop_last
        )
        sampler.set_epoch(epoch)
        ranks.append(list(sampler))
    return Shards(length, ranks)


def recorded(run: Run) -> list[Shards]:
    """The shards that a run recorded, one for each epoch.

    From records with `shard`, a list of samples, and `samples`, how many there are, one an epoch on
    each rank. Raises ValueError where there are none, or not as many on each rank.
    """
    by_rank = [list(_records(rank.records)) for rank in run]
    if not by_rank[0] or {len(records) for records in by_rank} != {len(by_rank[0])}:
        raise ValueError("each rank must record `shard` and `samples` in each epoch")
    epochs = []
    for records in zip(*by_rank, strict=True):
        samples = records[0][0]
        shards = [shard for _, shard in records]
        if {count for count, _ in records} != {samples}:
            raise ValueError("the ranks do not agree on how many samples there are")
        if set().union(*shards) - set(range(samples)):
            raise ValueError(f"a shard holds something else than samples from 0 to {samples - 1}")
        epochs.append(Shards(samples, shards))
    return epochs


def _records(records: Sequence) -> Iterator[tuple[int, list[int]]]:
    for record in records:
        if "shard" in record.values and "samples" in record.values:
            yield record.values["samples"], record.values["shard"]
