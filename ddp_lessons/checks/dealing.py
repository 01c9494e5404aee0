"""How samples are dealt to ranks, rightly and in the ways that are often written instead."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

Deal = Callable[[list[int], int], list[list[int]]]  # order, ranks -> a shard for each rank
SHORT = 5  # samples: with fewer of them two orders may be the same by chance


@dataclass(frozen=True)
class Draw:
    """One pass over a sampler: what it was told, what it gave and what torch's gives.

    `here` is the process that asked, `rank` the one it asked for; `epochs` are the epochs that the
    sampler was told so far, `latest` is what any sampler of the process was told last. Draws with
    the same `table` are one epoch of all ranks. `drawn` says where it was drawn: process, number of
    the sampler, number of the pass.
    """

    here: int
    world_size: int
    rank: int
    ranks: int
    length: int
    shuffle: bool
    seed: int
    epochs: tuple[int, ...]
    latest: int
    drawn: tuple[int, int, int]
    table: tuple
    got: list[int]
    want: list[int]

    @property
    def epoch(self) -> int:
        return self.epochs[-1] if self.epochs else 0

    @property
    def sampler(self) -> tuple[int, int]:
        return self.drawn[:2]


def shuffled(length: int, number: int) -> list[int]:
    import torch

    return torch.randperm(length, generator=torch.Generator().manual_seed(number)).tolist()


def padded(order: list[int], ranks: int) -> list[int]:
    total = -(-len(order) // ranks) * ranks
    return (order * ranks)[:total]


def strided(order: list[int], ranks: int) -> list[list[int]]:
    return [order[rank::ranks] for rank in range(ranks)]


def shard(order: list[int], ranks: int, rank: int) -> list[int]:
    return padded(order, ranks)[rank::ranks]


# Wrong ways to deal, by the name of the mistake.


def _blocks(order: list[int], ranks: int) -> list[list[int]]:
    size = -(-len(order) // ranks)
    return [order[rank * size : (rank + 1) * size] for rank in range(ranks)]


def _floor_blocks(order: list[int], ranks: int) -> list[list[int]]:
    return _blocks(order[: len(order) // ranks * ranks], ranks)


def _even_blocks(order: list[int], ranks: int) -> list[list[int]]:
    size, more = divmod(len(order), ranks)
    ends = [rank * size + min(rank, more) for rank in range(ranks + 1)]
    return [order[a:b] for a, b in zip(ends, ends[1:], strict=False)]


def _from_end(order: list[int], ranks: int) -> list[list[int]]:
    missing = -len(order) % ranks
    return strided(order + order[len(order) - missing :], ranks)


def _from_end_wrapped(order: list[int], ranks: int) -> list[list[int]]:
    missing = -len(order) % ranks
    return strided(order + (order * ranks)[len(order) * ranks - missing :], ranks)


def _own(order: list[int], ranks: int) -> list[list[int]]:
    size = -(-len(order) // ranks)
    return [(own + own * ranks)[:size] for own in strided(order, ranks)]


DEALS: dict[str, tuple[Deal, ...]] = {
    "blocks": (
        lambda order, ranks: _blocks(padded(order, ranks), ranks),
        _blocks,
        _floor_blocks,
        _even_blocks,
    ),
    "pads_from_end": (
        _from_end,
        _from_end_wrapped,
        lambda order, ranks: strided(order + order[-1:] * (-len(order) % ranks), ranks),
        lambda order, ranks: strided(order + order[::-1][: -len(order) % ranks], ranks),
    ),
    "slice_of_zero": (
        lambda order, ranks: strided(order + order[-(-len(order) % ranks) :], ranks),
    ),
    "pads_with_one": (
        lambda order, ranks: strided(order + order[:1] * (-len(order) % ranks), ranks),
    ),
    "pads_once": (lambda order, ranks: strided(order + order[: -len(order) % ranks], ranks),),
    "pads_own_shard": (_own,),
    "one_round_more": (
        lambda order, ranks: strided(
            (order * (ranks + 1))[: (len(order) // ranks + 1) * ranks], ranks
        ),
    ),
    "drops": (lambda order, ranks: strided(order[: len(order) // ranks * ranks], ranks),),
    "no_padding": (strided,),
}


def mistake(draws: Sequence[Draw]) -> str:
    """The name of the mistake that explains all wrong draws of one launch, "" if none does. At
    least one of them is wrong."""
    if all(draw.got == (draw.want if draw.drawn[2] == 0 else []) for draw in draws):
        return "used_up"
    if name := next(_of_place(draws), ""):
        return name
    plain = [draw for draw in draws if not draw.shuffle]
    if any(draw.got != draw.want for draw in plain):
        return next(_of_deal(plain), "")
    return next(_of_order([draw for draw in draws if draw.shuffle]), "")


def _of_place(draws: Sequence[Draw]) -> Iterator[str]:
    """The place in the group was not what the sampler was told."""
    if _explains(draws, lambda d: _right(d, rank=d.rank or d.here)):
        yield "zero_is_none"
    for ranks, rank in ((1, 1), (1, 0), (0, 1)):
        if _explains(
            draws,
            lambda d, n=ranks, r=rank: _right(
                d, d.world_size if n else d.ranks, d.here if r else d.rank
            ),
        ):
            yield "arguments_ignored"
    if _explains(draws, lambda d: _right(d, ranks=2)):
        yield "always_two"


def _right(draw: Draw, ranks: int | None = None, rank: int | None = None) -> list[int]:
    order = list(range(draw.length))
    if draw.shuffle:
        order = shuffled(draw.length, draw.seed + draw.epoch)
    ranks, rank = ranks or draw.ranks, draw.rank if rank is None else rank
    return shard(order, ranks, rank)


def _of_deal(plain: Sequence[Draw]) -> Iterator[str]:
    for name, deals in DEALS.items():
        for deal in deals:
            if _explains(plain, lambda d, deal=deal: deal([*range(d.length)], d.ranks)[d.rank]):
                yield name
    if _explains(plain, lambda d: shard(shuffled(d.length, d.seed + d.epoch), d.ranks, d.rank)):
        yield "always_shuffles"
    if all(_ends_early(one) for one in _grouped(plain, "sampler")):
        yield "one_iterator"


def _ends_early(passes: Sequence[Draw]) -> bool:
    """Whether the first pass was right, and each later one is right or only the end of it."""
    first, *others = sorted(passes, key=lambda draw: draw.drawn[2])
    return first.got == first.want and all(
        draw.got == draw.want[len(draw.want) - len(draw.got) :] for draw in others
    )


def _of_order(draws: Sequence[Draw]) -> Iterator[str]:
    """Without shuffle all was right."""
    long = [draw for draw in draws if draw.length >= SHORT]
    if _explains(draws, lambda d: shard([*range(d.length)], d.ranks, d.rank)):
        yield "never_shuffles"
    for add in (sum, len):
        if _explains(
            draws,
            lambda d, add=add: shard(shuffled(d.length, d.seed + add(d.epochs)), d.ranks, d.rank),
        ):
            yield "epochs_add_up"
    if _explains(draws, lambda d: shard(shuffled(d.length, d.seed + d.latest), d.ranks, d.rank)):
        yield "shared_epoch"
    many = [draw for draw in long if draw.ranks > 1]
    if many and all(
        sorted(d.got) == sorted(shard([*range(d.length)], d.ranks, d.rank)) for d in many
    ):
        yield "shuffles_shard"
    if _explains(draws, _padded_unshuffled):
        yield "pads_unshuffled"
    if _explains(draws, _padded_then_shuffled):
        yield "pads_before_shuffling"
    even = [draw for draw in long if draw.length % draw.ranks == 0]
    if any(len(set(draw.got)) < len(draw.got) for draw in even):
        yield "with_replacement"
    if any(missed(table) for table in _grouped(long, "table") if _full(table)):
        yield "seed_by_rank"
    passes = _grouped(long, "sampler")
    if any(
        a.epoch == b.epoch and a.got != b.got for one in passes for a, b in combinations(one, 2)
    ):
        yield "goes_on"
    if all(draw.got == one[0].got for one in passes for draw in one):
        yield "no_set_epoch"
    seeds = defaultdict(list)
    for d in long:
        seeds[d.rank, d.ranks, d.length, d.epochs].append(d)
    if all(draw.got == one[0].got for one in seeds.values() for draw in one):
        yield "no_seed"
    if all(_is_one_order(one) for one in _grouped(draws, "table")):
        yield "another_order"


def evidence(name: str, draws: Sequence[Draw]) -> tuple[Draw, str] | None:
    """The draw that shows a mistake best, and what else shows it, where the first wrong one does
    not."""
    if name == "seed_by_rank":
        for table in _grouped(draws, "table"):
            wrong = [draw for draw in table if draw.got != draw.want]
            if _full(table) and wrong and (lost := missed(table)):
                return wrong[0], f"in that epoch no rank gets {lost[:10]}"
    if name == "goes_on":
        for one in _grouped(draws, "sampler"):
            for a, b in combinations(one, 2):
                if a.epoch == b.epoch and a.got != b.got:
                    if b.got == b.want:
                        return a, f"a later pass in that epoch gave {b.got}"
                    return b, f"an earlier pass in that epoch gave {a.got}"
    return None


def missed(table: Sequence[Draw]) -> list[int]:
    """The samples that no rank got in one epoch."""
    return sorted(set(range(table[0].length)).difference(*(draw.got for draw in table)))


def _full(table: Sequence[Draw]) -> bool:
    return all(len(draw.got) == len(draw.want) for draw in table)


def _explains(draws: Sequence[Draw], model: Callable[[Draw], list[int]]) -> bool:
    return all(draw.got == model(draw) for draw in draws)


def _padded_unshuffled(draw: Draw) -> list[int]:
    order = shuffled(draw.length, draw.seed + draw.epoch)
    more = -draw.length % draw.ranks
    return [*order, *([*range(draw.length)] * draw.ranks)[:more]][draw.rank :: draw.ranks]


def _padded_then_shuffled(draw: Draw) -> list[int]:
    cards = padded([*range(draw.length)], draw.ranks)
    order = shuffled(len(cards), draw.seed + draw.epoch)
    return [cards[place] for place in order][draw.rank :: draw.ranks]


def _is_one_order(table: Sequence[Draw]) -> bool:
    """Whether these shards are one order of all samples, rightly padded and dealt."""
    by_rank = [draw.got for draw in sorted(table, key=lambda draw: draw.rank)]
    length, ranks = table[0].length, table[0].ranks
    if [len(got) for got in by_rank] != [-(-length // ranks)] * ranks:
        return False
    dealt = [sample for row in zip(*by_rank, strict=True) for sample in row]
    order = dealt[:length]
    return sorted(order) == list(range(length)) and dealt == padded(order, ranks)


def _grouped(draws: Sequence[Draw], by: str) -> list[list[Draw]]:
    groups = defaultdict(list)
    for draw in draws:
        groups[getattr(draw, by)].append(draw)
    return list(groups.values())
