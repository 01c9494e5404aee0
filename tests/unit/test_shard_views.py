"""The shard map, its sliders, and the samples that rank 0 has met."""

from __future__ import annotations

import html
import re
from itertools import product
from pathlib import Path

import pytest
from torch.utils.data import DistributedSampler

from ddp_lessons import views
from ddp_lessons.placement import place
from ddp_lessons.run import Rank, Record, Run
from ddp_lessons.views import epochs, shard_grid, shards, theme
from ddp_lessons.views.shards import Cell, Shards


def torchs(length, world_size, shuffle, drop_last, epoch) -> list[list[int]]:
    """What a training loop on each rank would be given."""
    ranks = []
    for rank in range(world_size):
        sampler = DistributedSampler(
            range(length), world_size, rank, shuffle=shuffle, drop_last=drop_last
        )
        for current in range(epoch + 1):
            sampler.set_epoch(current)
            given = list(sampler)
        ranks.append(given)
    return ranks


@pytest.mark.parametrize("world_size", range(1, 9))
def test_the_shard_map_is_torchs_sampler_for_every_length_option_and_epoch(world_size):
    for case in product(range(41), (False, True), (False, True), range(3)):
        length, shuffle, drop_last, epoch = case
        found = shards.sampled(
            length, world_size, shuffle=shuffle, drop_last=drop_last, epoch=epoch
        )
        ranks = torchs(length, world_size, shuffle, drop_last, epoch)
        drawn: list[list[int]] = [[] for _ in range(world_size)]
        for cell in found.cells:
            assert cell.place == len(drawn[cell.rank]), case
            drawn[cell.rank].append(cell.sample)
        assert drawn == ranks, case
        # Counted apart from the sampler: each sample once, then padding or a rest.
        again = sum(cell.again for cell in found.cells)
        rest = length % world_size
        assert len({len(rank) for rank in drawn}) == 1, case
        assert again == (0 if drop_last or not rest else world_size - rest), case
        assert len(found.left_out) == (rest if drop_last else 0), case
        assert {cell.sample for cell in found.cells} | set(found.left_out) == set(range(length))


def texts(figure) -> dict[str, list[str]]:
    """By row label, the numbers that stand in its row, from left to right."""
    placed = [
        (round(text.get_position()[1], 3), text.get_position()[0], text.get_text())
        for text in figure.axes[0].texts
    ]
    names = {y: text for y, x, text in placed if x == 0 and re.match("rank|nobody", text)}
    return {
        name: [text for other, x, text in sorted(placed) if other == y and x > 0]
        for y, name in names.items()
    }


@pytest.mark.parametrize("length", [0, 1, 3, 10, 17, 40])
@pytest.mark.parametrize("world_size", [1, 3, 8])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("framed", [False, True])
def test_every_number_of_the_map_is_drawn_in_the_row_of_its_rank(
    length, world_size, drop_last, framed
):
    found = shards.sampled(length, world_size, shuffle=True, drop_last=drop_last, epoch=1)
    figure = shard_grid._drawn({"": [found]}, shard_grid.FRAME if framed else None)
    ranks = torchs(length, world_size, True, drop_last, 1)
    wanted = {f"rank {n}": list(map(str, rank)) or ["nothing"] for n, rank in enumerate(ranks)}
    if left := sorted(set(range(length)).difference(*ranks)):
        wanted["nobody"] = list(map(str, left))
    assert texts(figure) == wanted
    hatched = [patch for patch in figure.axes[0].patches if patch.get_hatch()]
    assert len(hatched) == sum(map(len, ranks)) - len(set().union(*ranks))
    width, height = figure.get_size_inches()
    for patch in figure.axes[0].patches:  # inside the picture, and above the key
        (left, top), (right, low) = patch.get_bbox().min, patch.get_bbox().max
        assert left >= 0 and top >= 0 and right <= width and low <= height - 0.3


def test_a_sample_comes_again_where_it_was_given_out_in_an_earlier_round_or_to_a_lower_rank():
    found = Shards(6, [[0, 1], [1, 2], [1, 1]])
    assert found.cells == [
        Cell(0, 0, 0, False),
        Cell(1, 0, 1, False),
        Cell(2, 0, 1, True),
        Cell(0, 1, 1, True),
        Cell(1, 1, 2, False),
        Cell(2, 1, 1, True),
    ]
    assert found.left_out == [3, 4, 5]


def made(samples: int, *by_epoch: list[list[int]]) -> Run:
    """A run whose ranks recorded these shards: an epoch a list, in it a list a rank."""
    ranks = tuple(
        Rank(
            n,
            "cpu",
            1,
            1,
            0,
            "",
            "",
            tuple(
                Record(n, "epoch", 0.0, 1, {"samples": samples, "shard": epoch[n]})
                for epoch in by_epoch
                if n < len(epoch)
            ),
            True,
        )
        for n in range(max(map(len, by_epoch), default=1))
    )
    return Run(
        "some.py", len(ranks), place(len(ranks), gpus=0, nccl=False), 0.5, ranks, Path("log")
    )


SAME = made(4, [[3, 1], [0, 2]], [[3, 1], [0, 2]])
FRESH = made(4, [[3, 1], [0, 2]], [[0, 1], [2, 3]])
OVERLAP = made(4, [[3, 1], [3, 2]])

PICTURES = {
    "two epochs": lambda: views.shard_map({"<&>": SAME, "with set_epoch": FRESH}),
    "overlap": lambda: views.shard_map({"seed=rank": OVERLAP}),
    "sampler": lambda: views.sampler(10, 4).still,
    "empty": lambda: views.sampler(3, 8, drop_last=True).still,
    "met": lambda: views.samples_met({"without <&>": SAME, "with": FRESH, "lost": OVERLAP}),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_the_same_each_time_and_leaves_ink_and_paper_to_the_theme(name):
    picture = PICTURES[name]()
    assert picture.svg == PICTURES[name]().svg
    drawing = picture.svg.partition("</style>")[2]
    assert "var(--ink)" in drawing
    for colour in theme.DARK:
        assert colour not in drawing
    assert f'alt="{html.escape(picture.sentence)}"' in picture.html()
    assert picture.sentence.endswith(".")


def test_the_map_says_whether_the_order_changes_and_who_is_given_out_again_or_left_out():
    told = repr(views.shard_map({"without": SAME, "with": FRESH, "seed=rank": OVERLAP}))
    each = "2 ranks get 2 of 4 samples each; none is given out again; none is left out"
    assert told == (
        "without: both epochs have the same order. with: each epoch has another order. "
        f"without: {each}. with: {each}. "
        "seed=rank: 2 ranks get 2 of 4 samples each; 1 is given out again (3); 1 is left out (0)."
    )
    told = repr(views.shard_map({"without": SAME, "with": FRESH}))
    assert told == (
        "without: both epochs have the same order. with: each epoch has another order. "
        f"In each epoch {each}."
    )


def test_the_map_of_one_run_tells_its_two_epochs_apart_where_others_are_given_out_again():
    told = repr(views.shard_map({"ours": made(3, [[0, 1], [2, 0]], [[2, 1], [0, 2]])}))
    each = "2 ranks get 2 of 3 samples each; 1 is given out again ({}); none is left out"
    assert told == (
        f"ours: each epoch has another order. Epoch 0: {each.format(0)}. Epoch 1: {each.format(2)}."
    )


def test_the_samplers_sentence_names_its_settings_the_padding_and_the_rest():
    assert repr(views.sampler(10, 4)) == (
        "shuffle=False, drop_last=False, epoch 0: 4 ranks get 3 of 10 samples each; "
        "2 are given out again (0, 1); none is left out."
    )
    assert "8 ranks get 0 of 3 samples each; none is given out again; 3 are left out" in repr(
        views.sampler(3, 8, drop_last=True)
    )


@pytest.mark.parametrize(
    "run",
    [
        made(4),
        made(4, [[0, 1], [2, 3]], [[0, 1]]),
        made(4, [[0, 1], [2, 4]]),
        made(4, [[-1], [2]]),
    ],
    ids=["nothing", "a rank short of an epoch", "beyond the end", "before the start"],
)
def test_records_that_do_not_fit_are_refused(run):
    for view in (views.shard_map, views.samples_met):
        with pytest.raises(ValueError, match="must record|holds something else"):
            view({"x": run})


def test_too_many_samples_or_ranks_to_draw_are_refused():
    with pytest.raises(ValueError, match="at most 40 samples"):
        views.shard_map({"x": made(41, [[0]])})
    with pytest.raises(ValueError, match="and 8 ranks"):
        views.shard_map({"x": made(9, [[n] for n in range(9)])})
    for arguments in ((41, 2), (0, 2), (8, 0), (8, 9)):
        with pytest.raises(ValueError, match="whole number from"):
            views.sampler(*arguments)
    with pytest.raises(ValueError, match="epoch is a whole number from 0 to 9"):
        views.sampler(8, 2, epoch=10)


def test_the_samples_met_are_counted_once_each_for_rank_0_and_for_all_ranks():
    run = made(8, [[0, 1], [2, 3]], [[1, 2], [0, 4]], [[1, 1], [7, 7]])
    found = shards.recorded(run)
    assert epochs.shares(found, [0]) == [2 / 8, 3 / 8, 3 / 8]
    assert epochs.shares(found) == [4 / 8, 5 / 8, 6 / 8]


def test_the_sentence_about_samples_met_tells_rank_0_from_all_ranks():
    assert repr(views.samples_met({"without": SAME, "with": FRESH})) == (
        "Of 4 samples, rank 0 has met, after 2 epochs: without 50%; with 75%. "
        "All ranks together: 100% from the first epoch on."
    )
    assert "All ranks together: fine 100% from the first epoch on; lost 75% from the" in repr(
        views.samples_met({"fine": SAME, "lost": OVERLAP})
    )


# The widget


def knobs(box) -> dict:
    *rows, _ = box.children
    return {knob.description: knob for row in rows for knob in row.children}


def test_the_sliders_reach_the_whole_grid_and_start_where_the_still_picture_stands():
    found = knobs(views.sampler(10, 4, drop_last=True, epoch=2).widget())
    assert {name: knob.value for name, knob in found.items()} == {
        "length": 10,
        "world_size": 4,
        "epoch": 2,
        "shuffle": False,
        "drop_last": True,
    }
    limits = {n: (k.min, k.max) for n, k in found.items() if hasattr(k, "min")}
    assert limits == {"length": (1, 40), "world_size": (1, 8), "epoch": (0, 9)}


def test_each_slider_and_box_redraws_what_torchs_sampler_gives():
    made = views.sampler(10, 4)
    box = made.widget()
    screen, found = box.children[-1], knobs(box)
    settings = dict(made.settings)
    assert "4 ranks get 3 of 10 samples each" in screen.value
    for name, value in (
        ("length", 3),
        ("world_size", 2),
        ("shuffle", True),
        ("epoch", 1),
        ("drop_last", True),
    ):
        found[name].value = settings[name] = value
        assert screen.value == shard_grid._sampler(**settings, framed=True).html()
    assert "shuffle=True, drop_last=True, epoch 1: 2 ranks get 1 of 3 samples each" in screen.value


def test_all_pictures_under_the_sliders_have_one_size_so_that_nothing_jumps():
    sizes = set()
    for length, world_size in ((1, 1), (3, 8), (40, 1), (39, 8)):
        svg = shard_grid._sampler(length, world_size, 0, True, True, framed=True).svg
        sizes.add(re.search(r'viewBox="[^"]*"', svg)[0])
    assert len(sizes) == 1


def test_samples_that_come_again_are_named_in_order_with_how_often():
    told = repr(views.shard_map({"x": made(16, [[1, 2], [1, 2], [0, 2], [0, 12], [2, 12]])}))
    assert "6 are given out again (0, 1, 2 3 times, 12)" in told
