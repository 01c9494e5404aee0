"""What lesson 07 says of samplers and loaders, on real ranks."""

from __future__ import annotations

import pytest
from torch.utils.data import DataLoader, DistributedSampler

from ddp_lessons import launch
from ddp_lessons.run import Run

LESSON = "07_distributed_sampler"


def shards(run: Run) -> list[list[list[int]]]:
    """By epoch and rank."""
    by_rank = [[record.values["shard"] for record in rank.records] for rank in run]
    return [list(epoch) for epoch in zip(*by_rank, strict=True)]


def script(folder, body: str):
    path = folder / "cell.py"
    path.write_text(
        "import torch\n"
        "import torch.distributed as dist\n"
        "from torch.utils.data import DataLoader, DistributedSampler\n"
        "from ddp_lessons.worker import process_group, record\n"
        "with process_group():\n"
        + "".join(f"    {line}\n" for line in body.splitlines())
        + "    dist.barrier()\n",
        encoding="utf-8",
    )
    return path


@pytest.mark.parametrize("world_size", [1, 2, 4, 5, 8])
def test_a_slice_is_the_samplers_shard_where_the_samples_divide(world_size):
    run = launch(f"{LESSON}/by_hand.py", world_size)
    assert run.values("equal") == [True] * world_size
    assert run.values("shard") == [10_000 // world_size] * world_size
    assert run.values("data") == [10_000] * world_size
    assert run.values("first")[-1][0] == world_size - 1


def test_a_sampler_makes_no_call_to_other_ranks():
    run = launch(f"{LESSON}/by_hand.py", 2)
    assert [call.op for call in run.calls] == ["barrier", "barrier"]


def test_set_epoch_alone_changes_the_order_and_the_union_is_whole_either_way():
    same = shards(launch(f"{LESSON}/epochs.py", 2, args=["8", "2"]))
    fresh = shards(launch(f"{LESSON}/epochs.py", 2, args=["8", "2", "set_epoch"]))
    assert same[0] == same[1] == fresh[0]
    assert fresh[0] != fresh[1]
    for ranks in (*same, *fresh):
        assert sorted(ranks[0] + ranks[1]) == list(range(8))


def test_without_set_epoch_every_sample_is_met_and_the_same_ones_share_every_batch():
    same = shards(launch(f"{LESSON}/epochs.py", 5, args=["10000", "3"]))
    fresh = shards(launch(f"{LESSON}/epochs.py", 5, args=["10000", "3", "set_epoch"]))
    assert set().union(*same[0]) == set(range(10_000))

    def batches(ranks):
        return [{s for shard in ranks for s in shard[i : i + 4]} for i in range(0, 2000, 4)]

    assert batches(same[0]) == batches(same[2])
    assert not any(batch in batches(fresh[2]) for batch in batches(fresh[0]))


def test_ten_samples_on_four_ranks_are_twelve_and_the_accuracy_is_wrong():
    one, four = (launch(f"{LESSON}/accuracy.py", n) for n in (1, 4))
    assert one.values("evaluated") == [10]
    assert one.values("accuracy") == [0.8]
    assert four.values("evaluated") == [12] * 4
    assert four.values("accuracy") == [0.75] * 4
    assert four.values("shard") == [[0, 4, 8], [1, 5, 9], [2, 6, 0], [3, 7, 1]]


def test_three_samples_on_eight_ranks_wrap_around_or_leave_every_rank_empty_without_an_error():
    run = launch(f"{LESSON}/few.py", 8)
    assert run.ok
    assert run.values("padded") == [[10], [11], [12], [10], [11], [12], [10], [11]]
    assert run.values("dropped") == [[]] * 8


def test_64_samples_are_8_steps_on_one_rank_4_on_two_and_8_on_two_without_a_sampler():
    one, two = (launch("01_why_ddp/steps.py", n) for n in (1, 2))
    bare = launch(f"{LESSON}/no_sampler.py", 2)
    found = [(run.values("steps"), run.values("together")) for run in (one, two, bare)]
    assert found == [([8], [8]), ([4, 4], [16, 16]), ([8, 8], [16, 16])]


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_a_stream_of_6_is_read_by_every_loader_worker_unless_it_is_split(world_size):
    run = launch(f"{LESSON}/stream.py", world_size)
    assert run.values("naive_all_ranks") == [12 * world_size] * world_size
    assert run.values("split_all_ranks") == [6] * world_size


def test_with_a_sampler_loader_workers_change_nothing_about_the_shard(tmp_path):
    body = """sampler = DistributedSampler(range(12))
loader = DataLoader(range(12), sampler=sampler, num_workers=2, multiprocessing_context="fork")
record("read", read=torch.cat(list(loader)), shard=list(sampler))"""
    run = launch(script(tmp_path, body), 2)
    assert run.values("read") == run.values("shard")
    assert sorted(sum(run.values("read"), [])) == list(range(12))


def test_a_loader_takes_a_sampler_or_shuffle_but_not_both():
    sampler = DistributedSampler(range(8), 2, 0)
    with pytest.raises(ValueError, match="sampler option is mutually exclusive with shuffle"):
        DataLoader(range(8), sampler=sampler, shuffle=True)


def test_with_a_seed_for_each_rank_four_ranks_meet_68_percent_and_nothing_complains(tmp_path):
    body = 'record("epoch", shard=list(DistributedSampler(range(10_000), seed=dist.get_rank())))'
    run = launch(script(tmp_path, body), 4)
    met = set().union(*run.values("shard"))
    assert len(met) / 10_000 == pytest.approx(1 - (3 / 4) ** 4, abs=0.02)
    assert not any(rank.stderr for rank in run)


def test_the_lessons_missing_lines_give_8_steps_and_another_order(tmp_path):
    body = """data, orders = list(range(64)), {}
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8 // dist.get_world_size(), sampler=sampler)
for epoch in range(2):
    sampler.set_epoch(epoch)
    orders[epoch] = torch.cat(list(loader)).tolist()
record("loader", steps=len(loader), changes=orders[0] != orders[1])"""
    run = launch(script(tmp_path, body), 2)
    assert run.values("steps") == [8, 8]
    assert run.values("changes") == [True, True]
