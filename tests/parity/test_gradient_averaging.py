"""The averagers of lesson 06 on real ranks, held against one model on the global batch."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch
from models import MODELS

from ddp_lessons import launch, scripts
from ddp_lessons.checks import broken_run, training
from ddp_lessons.run import Run

LESSON = "06_gradient_averaging"
STEPS = 20
SAME = 1e-6

# What each rank runs: a model of its own seed, wrapped or averaged, beside a full-batch model.
HARNESS = """
import copy
import gc
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel as DDP

from ddp_lessons.worker import process_group, record

{functions}


{models}


kind = sys.argv[1]
with process_group() as device:
    rank, world_size = dist.get_rank(), dist.get_world_size()
    mine, full = make(kind, 100 + rank).to(device), make(kind, 100).to(device)
    data = torch.Generator().manual_seed(7)  # the same on every rank
    x, y = torch.randn(120, 6, generator=data), torch.randn(120, 6, generator=data)
    {start}
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.3) for m in (mine, full)]
    for step in range({steps}):
        batch = torch.randperm(120, generator=data)[:12].tolist()  # reshuffled at every step
        part = batch[rank::world_size]
        for optimizer in optimizers:
            optimizer.zero_grad()
        mse_loss(full(x[batch].to(device)), y[batch].to(device)).backward()
        mse_loss(model(x[part].to(device)), y[part].to(device)).backward()
        {average}
        grads = [[p.grad for p in m.parameters()] for m in (mine, full)]
        gradient_gap = gap(*grads)
        for optimizer in optimizers:
            optimizer.step()
        parameter_gap = gap(list(mine.parameters()), list(full.parameters()))
        record("step", gradient_gap=gradient_gap, parameter_gap=parameter_gap)
    del model
    gc.collect()
    dist.barrier()
"""

HAND = "send_weights(mine); model = mine", "average_gradients(mine)"
AVERAGERS = {"by_hand.py": HAND, "DDP": ("model = DDP(mine)", "")}
BROKEN = {
    "no broadcast": ("model = mine", "average_gradients(mine)"),
    "nobody averages": ("send_weights(mine); model = mine", ""),
    "the sum": ("send_weights(mine); model = mine", "add_up_gradients(mine)"),
    "divided again on top of DDP": (
        "model = DDP(mine)",
        "[p.grad.div_(world_size) for p in mine.parameters()]",
    ),  # noqa: E501
    "parameters in place of gradients": (
        "send_weights(mine); model = mine",
        "[dist.all_reduce(p.data, op=dist.ReduceOp.AVG) for p in mine.parameters()]",
    ),
}


def functions() -> str:
    """The functions of the lesson's scripts, as they stand there."""
    found = {}
    for name in ("sum.py", "by_hand.py"):
        text = (scripts.HERE / LESSON / name).read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef):
                found[node.name] = ast.get_source_segment(text, node)
    assert set(found) == {"send_weights", "average_gradients", "add_up_gradients"}
    return "\n\n".join(found.values())


def compared(folder: Path, parts: tuple[str, str], kind: str, world_size: int) -> Run:
    script = folder / "harness.py"
    start, average = parts
    text = HARNESS.format(
        models=MODELS, functions=functions(), start=start, average=average or "pass", steps=STEPS
    )
    script.write_text(text, encoding="utf-8")
    return launch(script, world_size, args=[kind])


def every(run: Run, name: str) -> list[list[float]]:
    """By rank, what was recorded at each step."""
    return [[r.values[name] for r in rank.records if name in r.values] for rank in run]


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["plain", "frozen", "tied"])
@pytest.mark.parametrize("averager", AVERAGERS)
def test_an_averager_keeps_every_rank_at_every_step_on_the_full_batch_model(
    averager, kind, world_size, tmp_path
):
    run = compared(tmp_path, AVERAGERS[averager], kind, world_size)
    for name in ("gradient_gap", "parameter_gap"):
        found = every(run, name)
        assert [len(rank) for rank in found] == [STEPS] * world_size
        assert max(map(max, found)) < SAME, name


@pytest.mark.parametrize("broken", BROKEN)
def test_the_comparison_sees_a_broken_averager(broken, tmp_path):
    run = compared(tmp_path, BROKEN[broken], "plain", 2)
    assert max(map(max, every(run, "parameter_gap"))) > 1e-3


def steps(name: str, world_size: int, *args: str) -> dict[str, torch.Tensor]:
    """What one of the lesson's scripts recorded, each as ranks x steps x numbers."""
    run = launch(f"{LESSON}/{name}", world_size, args=args)
    return {what: torch.tensor(every(run, what)) for what in ("gradient", "parameters")}


# The lesson itself shows it for two ranks.
def test_the_digits_train_on_each_of_four_ranks_as_in_one_process():
    one = steps("one_process.py", 1)
    for name in ("by_hand.py", "ddp.py"):
        for what, found in steps(name, 4).items():
            assert found.shape == (4, 20, one[what].shape[2])
            assert (found - one[what]).abs().max() < SAME


def test_two_ranks_have_the_gradients_1_and_2_the_sum_3_and_the_mean_of_the_global_batch():
    two, one = launch(f"{LESSON}/arrows.py", 2), launch(f"{LESSON}/arrows.py", 1)
    assert two.values("local") == [[1.0, 2.0], [2.0, 1.0]]
    assert two.values("sum") == [[3.0, 3.0]] * 2
    assert two.values("mean") == one.values("mean") * 2 == [[1.5, 1.5]] * 2


def test_a_loss_that_is_averaged_first_leaves_each_rank_its_own_gradient_halved():
    run = launch(f"{LESSON}/loss_first.py", 2)
    assert run.values("loss") == [1.5, 1.5]
    assert run.values("gradient") == [0.5, 1.0]


def test_torch_warns_of_a_loss_that_is_averaged_first():
    run = launch(f"{LESSON}/loss_first.py", 2)
    assert all("silently incorrect behavior" in rank.stderr for rank in run)


@pytest.mark.slow  # the lesson shows it, too
def test_the_sum_shows_under_sgd_and_hides_under_adam():
    far = {}
    for name in ("SGD", "Adam"):
        wrong, right = steps("sum.py", 2, name), steps("one_process.py", 1, name)
        far[name] = (wrong["parameters"] - right["parameters"]).abs().max()
    assert far["SGD"] > 0.1
    assert far["Adam"] < 0.001


def test_unequal_parts_and_sum_losses_miss_the_global_batchs_gradient():
    run = launch(f"{LESSON}/splits.py", 2)
    assert run.values("equal_parts") == [0.0, 0.0]
    assert run.values("unequal_parts") == pytest.approx([0.092, 0.092], abs=5e-4)
    assert run.values("sum_loss") == [0.5, 0.5]


def test_ddp_sends_weights_and_buffers_and_gathers_no_loss():
    run = launch(f"{LESSON}/claims.py", 2)
    assert run.values("weight_before") == [1.0, 11.0]
    assert run.values("weight") == [1.0, 1.0]
    assert run.values("buffer") == [5.0, 5.0]
    assert run.values("loss") == [1.0, 3.0]
    assert run.values("gradient") == [1.5, 1.5]
    assert run.values("weight_after") == [0.9, 0.8]


def test_an_average_of_integers_raises_on_gloo(tmp_path):
    script = tmp_path / "integers.py"
    script.write_text(
        "import torch, torch.distributed as dist\n"
        "from ddp_lessons.worker import process_group, record\n"
        "with process_group():\n"
        "    for dtype in (torch.float32, torch.int64):\n"
        "        x = torch.tensor([dist.get_rank() + 1], dtype=dtype)\n"
        "        try:\n"
        "            dist.all_reduce(x, op=dist.ReduceOp.AVG)\n"
        "            record('averaged', dtype=str(dtype), x=x)\n"
        "        except RuntimeError:\n"
        "            record('raised', refused=str(dtype))\n",
        encoding="utf-8",
    )
    run = launch(script, 2, device="cpu")
    assert run.values("x") == [[1.5], [1.5]]
    assert run.values("refused") == ["torch.int64"] * 2


def test_the_broken_run_goes_wrong_once_and_its_loss_points_elsewhere():
    found = broken_run.Evidence(launch(broken_run.SCRIPT, broken_run.RANKS))
    steps, ranks = range(1, broken_run.STEPS + 1), range(broken_run.RANKS)
    wrong = [(rank, step) for step in steps for rank in ranks if not found.is_mean(rank, step)]
    bug, rank, step = found.first()
    assert (bug, wrong) == ("sum", [(rank, step)])
    assert rank != 0
    assert found.loss.max() not in (*found.loss[:, rank], *found.loss[step - 1])
    assert found.loss[step - 1].argmax() == 0
    assert found.against(bug, rank, step) == ("", "")


def test_the_check_trains_on_the_samples_of_the_broken_run():
    found = broken_run.Evidence(launch(broken_run.SCRIPT, broken_run.RANKS))
    net = training.model(dtype=torch.float64)
    right = training.reference(net, broken_run.samples(), broken_run.RATE)
    step = found.first()[2]
    for number, (own, mean) in enumerate(right):
        if number < step:  # after that one the ranks' weights differ
            assert all(map(training.close, found.local[number], own))
            assert training.close(found.mean[number], mean)
