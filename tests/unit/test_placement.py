"""Where ranks go, for machines with 0, 1, 2 and 8 GPUs."""

from __future__ import annotations

import pytest
import torch

from ddp_lessons.placement import Placement, gpu_count, place


def on(gpus: int, world_size: int, nnodes: int = 1, device: str = "auto", **build) -> Placement:
    return place(world_size, nnodes, device, gpus=gpus, nccl=build.get("nccl", True))


@pytest.fixture(autouse=True)
def no_cards_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


FITS = [(1, 1), (2, 1), (2, 2), (8, 1), (8, 2), (8, 7), (8, 8)]
TOO_FEW = [(0, 1), (0, 2), (0, 8), (1, 2), (2, 3), (2, 4), (8, 9), (8, 64)]


@pytest.mark.parametrize(("gpus", "world_size"), FITS)
def test_as_many_gpus_as_ranks_means_nccl_and_a_gpu_a_rank(gpus: int, world_size: int):
    placed = on(gpus, world_size)
    assert placed.backend == "nccl"
    assert placed.devices == tuple(f"cuda:{rank}" for rank in range(world_size))
    assert len(set(placed.devices)) == world_size


@pytest.mark.parametrize(("gpus", "world_size"), FITS)
def test_on_one_machine_nccl_leaves_the_visible_cards_as_they_are(gpus: int, world_size: int):
    assert on(gpus, world_size).visible == (None,)


@pytest.mark.parametrize(("gpus", "world_size"), TOO_FEW)
def test_fewer_gpus_than_ranks_means_gloo_on_the_cpu_with_no_gpu_in_sight(gpus, world_size):
    placed = on(gpus, world_size)
    assert placed.backend == "gloo"
    assert placed.devices == ("cpu",) * world_size
    assert placed.visible == ("",)


@pytest.mark.parametrize(("gpus", "world_size"), [(1, 2), (2, 3), (8, 64)])
def test_the_sentence_has_both_numbers_where_there_are_too_few_gpus(gpus: int, world_size: int):
    sentence = on(gpus, world_size).sentence
    assert f"{world_size} ranks and {gpus} GPU" in sentence
    assert "gloo on the CPU" in sentence


def test_the_sentence_tells_no_gpu_from_too_few():
    assert on(0, 2).sentence == "gloo on the CPU (no GPU on this machine)."
    assert "1 GPU:" in on(1, 2).sentence
    assert "2 GPUs:" in on(2, 4).sentence


@pytest.mark.parametrize(
    ("gpus", "world_size", "nnodes", "visible"),
    [
        (2, 2, 2, ("0", "1")),
        (8, 4, 2, ("0,1", "2,3")),
        (8, 8, 2, ("0,1,2,3", "4,5,6,7")),
        (8, 8, 4, ("0,1", "2,3", "4,5", "6,7")),
    ],
)
def test_each_machine_gets_gpus_of_its_own(gpus, world_size, nnodes, visible):
    placed = on(gpus, world_size, nnodes)
    assert placed.backend == "nccl"
    assert placed.visible == visible


def test_local_ranks_and_so_devices_count_from_0_on_each_machine():
    assert on(8, 4, 2).devices == ("cuda:0", "cuda:1", "cuda:0", "cuda:1")
    assert on(2, 2, 2).devices == ("cuda:0", "cuda:0")


@pytest.mark.parametrize(
    ("listed", "visible"),
    [
        ("3,5,7,6", ("3,5", "7,6")),
        (" 3, 5 ,7,6 ", ("3,5", "7,6")),
        ("GPU-a,GPU-b,GPU-c,GPU-d", ("GPU-a,GPU-b", "GPU-c,GPU-d")),
    ],
)
def test_machines_share_out_the_cards_that_this_process_was_given(listed, visible, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    assert on(4, 4, 2).visible == visible


def test_cards_that_were_given_but_are_not_needed_stay_out(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5,7,6")
    assert on(4, 2, 2).visible == ("3", "5")


@pytest.mark.parametrize(("gpus", "world_size", "nnodes"), [(0, 2, 2), (1, 2, 2), (2, 4, 2)])
def test_too_few_gpus_are_hidden_from_every_machine(gpus, world_size, nnodes):
    placed = on(gpus, world_size, nnodes)
    assert placed.backend == "gloo"
    assert placed.visible == ("",) * nnodes


@pytest.mark.parametrize("gpus", [0, 1, 2, 8])
def test_asking_for_the_cpu_hides_the_gpus(gpus: int):
    placed = on(gpus, 2, device="cpu")
    assert (placed.backend, placed.devices, placed.visible) == ("gloo", ("cpu", "cpu"), ("",))
    assert 'device="cpu"' in placed.sentence


@pytest.mark.parametrize(("gpus", "world_size"), [(1, 1), (2, 2), (8, 8)])
def test_asking_for_cuda_where_it_fits_is_what_auto_does(gpus: int, world_size: int):
    assert on(gpus, world_size, device="cuda") == on(gpus, world_size)


@pytest.mark.parametrize(("gpus", "world_size"), [(1, 2), (2, 4), (8, 9)])
def test_cuda_that_does_not_fit_is_refused_with_both_numbers_and_the_ways_out(gpus, world_size):
    with pytest.raises(RuntimeError) as refusal:
        on(gpus, world_size, device="cuda")
    text = str(refusal.value)
    assert f"shows {gpus} GPU" in text
    assert f"{world_size} ranks need {world_size} GPUs" in text
    assert f"world_size={gpus}" in text
    assert "leave out device=" in text


@pytest.mark.parametrize("world_size", [1, 2, 8])
def test_cuda_without_a_gpu_is_refused_and_never_offers_zero_ranks(world_size: int):
    with pytest.raises(RuntimeError) as refusal:
        on(0, world_size, device="cuda")
    text = str(refusal.value)
    assert "0 GPUs" in text
    assert ("1 rank needs 1 GPU." if world_size == 1 else f"{world_size} ranks need ") in text
    assert "world_size=0" not in text
    assert "a machine that has them" in text
    assert "leave out device=" in text


@pytest.mark.parametrize(("gpus", "world_size"), FITS)
def test_a_build_without_nccl_takes_gloo_and_says_why(gpus: int, world_size: int):
    placed = on(gpus, world_size, nccl=False)
    assert (placed.backend, placed.visible) == ("gloo", ("",))
    assert "this build of torch has no NCCL" in placed.sentence


@pytest.mark.parametrize("gpus", [1, 2, 8])
def test_a_build_without_nccl_cannot_have_cuda(gpus: int):
    with pytest.raises(RuntimeError, match="no NCCL.*Install a CUDA build.*leave out device="):
        on(gpus, 1, device="cuda", nccl=False)


@pytest.mark.parametrize("gpus", [0, 1, 2, 8])
@pytest.mark.parametrize(("world_size", "nnodes"), [(1, 1), (2, 1), (2, 2), (8, 4), (9, 3)])
def test_there_is_a_device_for_each_rank_and_a_view_for_each_machine(gpus, world_size, nnodes):
    placed = on(gpus, world_size, nnodes)
    assert len(placed.devices) == world_size
    assert len(placed.visible) == nnodes


def test_cards_that_the_caller_names_for_the_ranks_are_shared_out_too():
    placed = place(4, 2, gpus=4, nccl=True, listed="4,5,6,7")
    assert placed.visible == ("4,5", "6,7")


@pytest.mark.parametrize(
    ("present", "listed", "count"), [(8, None, 8), (8, "2,3", 2), (8, "", 0), (0, "2,3", 0)]
)
def test_ranks_see_no_more_cards_than_the_caller_names(monkeypatch, present, listed, count):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: present)
    assert gpu_count(listed) == count
