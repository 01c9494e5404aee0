"""Who stands where, from made-up stacks and ledgers that real wrappers wrote."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch
from ledgers import Ranks

from ddp_lessons import stall, usual_causes
from ddp_lessons.placement import place
from ddp_lessons.run import Frame, Rank, Run

X = torch.ones(2)


def rank(number: int, device: str = "cpu", **facts) -> Rank:
    usual = {"exitcode": None, "stdout": "", "stderr": "", "records": (), "finished": False}
    usual |= {"pid": 9, "parent": 1, "started": 0.1, "called": 0.2, "joined": 0.3}
    return Rank(rank=number, device=device, **usual | facts)


def run(*ranks: Rank) -> Run:
    placed = place(len(ranks), gpus=0, nccl=False)
    return Run("test.py", len(ranks), placed, 0.5, ranks, Path("log"))


def own(line: int, source: str = "", file: str = "test.py") -> Frame:
    return Frame(file, line, "<module>", source, own=True)


def torchs(function: str) -> Frame:
    return Frame("distributed.py", 99, function, "...", own=False)


def test_on_nccl_a_rank_waits_at_or_after_the_first_call_that_others_have_not_made(
    tmp_path, monkeypatch
):
    ranks = Ranks(tmp_path, monkeypatch)
    for number in (0, 1):
        ranks[number].all_reduce(X)
    ranks[0].barrier()
    ranks[0].all_reduce(X)
    gpu = [
        rank(0, "cuda:0", calls=ranks.calls(0), stack=(own(40, "x.item()"),)),
        rank(1, "cuda:1", calls=ranks.calls(1), stack=(own(9, "time.sleep(600)"),)),
    ]
    one, other = stall.standings(run(*gpu))
    assert (one.what, one.on, one.line) == (
        "waits at or after barrier",
        (1,),
        ranks.calls(0)[1].line,
    )
    assert (other.what, other.place, other.source) == ("is", "line 9", "time.sleep(600)")
    # On gloo the same calls have returned, so that rank was at work.
    cpu = [rank(0, calls=ranks.calls(0), stack=(own(40),)), rank(1, calls=ranks.calls(1))]
    assert stall.standings(run(*cpu))[0].kind == "at work"


@pytest.mark.parametrize(
    ("functions", "what"),
    [
        (["backward", "_engine_run_backward"], "is in the backward pass"),
        (["forward", "_pre_forward"], "waits in the forward of DDP"),
        (
            ["_pre_forward", "_sync_buffers"],
            "waits in the forward of DDP, which sends the first rank's buffers to all",
        ),
        (
            ["__init__", "_verify_param_shape_across_processes"],
            "waits in DDP(...), which compares the shapes",
        ),
    ],
)
def test_what_ddp_does_for_the_reader_is_told_from_the_stack(functions, what):
    stack = (own(7, "step()"), *map(torchs, functions))
    (found,) = stall.standings(run(rank(0, stack=stack, forwards=1)))
    assert (found.kind, found.what, found.place) == ("inside", what, "line 7")


def test_a_line_of_another_file_says_whose_it_is():
    (found,) = stall.standings(run(rank(0, stack=(own(7), own(3, "f()", "helper.py")))))
    assert (found.place, [frame.line for frame in found.trace]) == ("line 3 of helper.py", [7, 3])


def test_ranks_that_stand_alike_are_told_together():
    found = stall.standings(run(*(rank(n, stack=(own(7 + n % 2),)) for n in range(4))))
    told = [stall.sentence(group) for group in stall.grouped(found)]
    assert told == ["ranks 0 and 2 are at line 7", "ranks 1 and 3 are at line 8"]


def test_torchs_functions_that_the_stack_is_searched_for_exist():
    from torch.autograd import graph
    from torch.distributed import distributed_c10d
    from torch.distributed import utils as distributed_utils
    from torch.nn.parallel import DistributedDataParallel as DDP

    homes = (graph, distributed_c10d, distributed_utils, DDP)
    for name in stall.INSIDE:
        assert any(hasattr(home, name) for home in homes), name


def test_a_call_that_all_have_made_is_being_done_and_nobody_waits(tmp_path, monkeypatch):
    ranks = Ranks(tmp_path, monkeypatch)
    for number in (0, 1):
        ranks[number].all_reduce(X)
    made = [dataclasses.replace(ranks.calls(number)[0], returned=None) for number in (0, 1)]
    monkeypatch.setattr(stall, "waited_for", lambda rank: made[rank.rank])
    found = stall.standings(run(rank(0, calls=ranks.calls(0)), rank(1, calls=ranks.calls(1))))
    assert [one.what for one in found] == ["is in all_reduce"] * 2
    assert "If they were at work" in usual_causes.cause(found)
