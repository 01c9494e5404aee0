"""Calls that do not fit together are named, with both sides and lines, whatever torch does."""

from __future__ import annotations

import re
import time
from pathlib import Path
from textwrap import dedent

import pytest

from ddp_lessons import WorkerError, launch

FAR = 120  # a limit that no run here may come near: a wait for ever counts as found late
SOON = 20  # seconds, on a busy machine; quiet ones need under 2

HEAD = """
    import time
    import torch
    import torch.distributed as dist
    from ddp_lessons.worker import process_group, record

    with process_group():
        rank, world_size = dist.get_rank(), dist.get_world_size()
        x = torch.ones(2)
"""

pytestmark = pytest.mark.usefixtures("warm")


def mismatch(path, world_size=2, **options) -> WorkerError:
    began = time.monotonic()
    with pytest.raises(WorkerError) as caught:
        launch(path, world_size, timeout=FAR, **options)
    assert time.monotonic() - began < SOON
    assert not caught.value.run.ok
    return caught.value


# Its first line, from "script.py: " on, and what the ranks do at lines 9 and 10.
CASES = {
    "op": (
        "rank 0 called barrier, line 10, where rank 1 called all_reduce, line 12.",
        """
        if rank == 0:
            dist.barrier()
        else:
            dist.all_reduce(x)
        """,
    ),
    "shape": (
        "all_reduce with different shapes: [1] on rank 0, line 9; [2] on rank 1, line 9.",
        """
        dist.all_reduce(x[: 1 + rank])
        """,
    ),
    "dtype": (
        "all_reduce with different dtypes: float32 on rank 0, line 9; int64 on rank 1, line 9.",
        """
        dist.all_reduce(x.long() if rank else x)
        """,
    ),
    "reduce op": (
        "all_reduce with different reduce ops: SUM on rank 0, line 9; MAX on rank 1, line 9.",
        """
        dist.all_reduce(x, dist.ReduceOp.MAX if rank else dist.ReduceOp.SUM)
        """,
    ),
    "root": (
        "broadcast with different roots: src 0 on rank 0, line 9; src 1 on rank 1, line 9.",
        """
        dist.broadcast(x, src=rank)
        """,
    ),
    "count": (
        "different sizes: send to rank 1 of 20 bytes on rank 0, line 10; "
        "recv from rank 0 of 8 bytes on rank 1, line 12.",
        """
        if rank == 0:
            dist.send(torch.ones(5), dst=1)
        else:
            dist.recv(x, src=0)
        """,
    ),
    "groups": (
        "rank 1 never called new_group, as rank 0 did, line 11.",
        """
        dist.barrier()
        if rank == 0:
            dist.new_group([0])
        dist.barrier()
        """,
    ),
    "splits": (
        "different sizes: all_to_all_single on rank 0, line 9; "
        "all_to_all_single on rank 1, line 9.",
        """
        dist.all_to_all_single(torch.ones(2 + 2 * rank), torch.ones(2 + 2 * rank))
        """,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_calls_that_do_not_fit_together_are_named_with_both_sides_and_lines(script, case):
    said, text = CASES[case]
    error = mismatch(script(HEAD + text.lstrip("\n")))
    assert str(error).splitlines()[0] == f"script.py: {said}"


def test_two_lines_whose_shapes_differ_are_perhaps_not_meant_for_each_other(script):
    aside = """
        if rank == 0:
            dist.all_reduce(x[:1])
        dist.all_reduce(x)
        """
    error = mismatch(script(HEAD + aside.lstrip("\n")))
    *_, cause = str(error).splitlines()
    assert "line 10; [2] on rank 1, line 11." in str(error).splitlines()[0]
    assert "a call that only some ranks make. If they are meant for each other: all" in cause


def test_the_report_has_each_sides_call_its_source_line_and_the_rule(script):
    error = mismatch(script(HEAD + CASES["op"][1].lstrip("\n")))
    assert str(error).splitlines()[1:] == [
        "  rank 0, script.py, line 10: barrier",
        "    dist.barrier()",
        "  rank 1, script.py, line 12: all_reduce SUM of float32 [2]",
        "    dist.all_reduce(x)",
        "  The calls of a group of ranks meet in the order in which each rank makes them, not by "
        "line. Look for a call inside `if rank == ...`, or in a loop that is longer on some ranks.",
    ]


def test_a_wrong_result_that_torch_gives_without_a_word_is_not_ok_and_can_still_be_seen(script):
    text = """
        dist.all_reduce(x, dist.ReduceOp.MAX if rank else dist.ReduceOp.SUM)
        record("sum", x=x)
    """
    error = mismatch(script(HEAD + text.lstrip("\n")))
    assert [rank.exitcode for rank in error.run] == [0, 0]
    assert all(set(values) <= {1.0, 2.0} for values in error.run.values("x"))


def test_ones_of_different_lengths_are_both_named_although_one_rank_gets_a_plausible_sum(script):
    text = """
        x = torch.ones(2 + rank)
        dist.all_reduce(x)
        record("sum", x=x)
    """
    error = mismatch(script(HEAD + text.lstrip("\n")))
    assert "[2] on rank 0, line 10; [3] on rank 1, line 10" in str(error)
    assert error.run.values("x")[0] == [2.0, 2.0]


def test_a_mismatch_in_a_sub_group_is_named_while_other_ranks_work_on(script):
    text = """
        half = dist.new_group([1, 2])
        if rank:
            dist.all_reduce(x, group=half, op=[None, dist.ReduceOp.MIN, dist.ReduceOp.MAX][rank])
        time.sleep(600)
    """
    error = mismatch(script(HEAD + text.lstrip("\n")), 3)
    said = "all_reduce with different reduce ops: MIN on rank 1, line 11; MAX on rank 2, line 11."
    assert str(error).startswith(f"script.py: {said}")


def test_the_one_rank_of_four_that_differs_is_the_one_that_is_named(script):
    text = """
        dist.all_reduce(x.double() if rank == 2 else x)
    """
    error = mismatch(script(HEAD + text.lstrip("\n")), 4)
    assert error.rank == 2
    said = "float32 on ranks 0, 1 and 3, line 9; float64 on rank 2, line 9."
    assert said in str(error).splitlines()[0]


def test_a_call_that_nobody_answers_is_named_although_every_rank_ended_well(script):
    text = """
        if rank == 0:
            dist.isend(x, dst=1)
    """
    error = mismatch(script(HEAD + text.lstrip("\n")))
    assert [rank.exitcode for rank in error.run] == [0, 0]
    said = "script.py: nobody answered isend to rank 1, called by rank 0, line 10."
    assert str(error).splitlines()[0] == said


def test_one_call_too_many_shows_where_calls_of_different_lines_met(script):
    text = """
        if rank == 0:
            dist.all_reduce(torch.tensor([100.0]))
        for i in range(3):
            y = torch.tensor([i + 1.0])
            dist.all_reduce(y)
            record("sum", y=y)
    """
    error = mismatch(script(HEAD + text.lstrip("\n")))
    assert [r.values["y"] for r in error.run[1].records] == [[101.0], [3.0], [5.0]]
    assert error.rank == 1
    first, *others = str(error).splitlines()
    said = "rank 1 came to the end of the script while rank 0 waited in all_reduce, line 13."
    assert first.endswith(said)
    assert "  Rank 1 did not: it had made 3 calls in the group, and this is the 4th." in others
    assert "all_reduce, line 10, on rank 0; all_reduce, line 13, on rank 1." in str(error)


def test_a_rank_that_was_aborted_for_it_is_told_after_the_reason(script):
    text = """
        if rank == 0:
            dist.send(torch.ones(500), dst=1)
        else:
            dist.recv(x, src=0)
        dist.barrier()
    """
    error = mismatch(script(HEAD + text.lstrip("\n")))
    first, *others = str(error).splitlines()
    assert first.startswith(
        "script.py: different sizes: send to rank 1 of 2000 bytes on rank 0, line 10;"
    )
    assert any(line.startswith("  After that rank") for line in others)


def test_torchrun_names_a_mismatch_too(script):
    error = mismatch(script(HEAD + CASES["op"][1].lstrip("\n")), engine="torchrun")
    assert str(error).startswith(f"script.py: {CASES['op'][0]}")


def test_the_report_in_the_readme_is_a_real_one():
    text = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"^    WorkerError: (my_script\.py: .*\n(?:    .*\n)+)", text, re.M)[1]
    error = mismatch("03_rank_and_world_size/stuck.py", device="cpu")
    real = str(error).replace("stuck.py", "my_script.py").splitlines()
    for line, shown_line in zip(real, dedent("    " + shown).splitlines(), strict=True):
        assert line.startswith(shown_line.removesuffix(" ..."))
