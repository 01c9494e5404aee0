"""What only the real torchrun does: restarts, and a group on several machines."""

from __future__ import annotations

import pytest

from ddp_lessons import WorkerError, launch


def test_a_script_that_fails_once_passes_on_attempt_one(script):
    text = """
        import os
        from ddp_lessons.worker import record
        attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
        record("tried", attempt=attempt)
        if attempt == 0 and os.environ["RANK"] == "1":
            raise ValueError("the first time")
        print("passed")
    """
    path = script(text)
    run = launch(path, 2, engine="torchrun", max_restarts=1)
    assert (run.ok, run.attempt) == (True, 1)
    assert run.values("attempt") == [1, 1]
    assert [rank.stdout for rank in run] == ["passed\n"] * 2


@pytest.mark.slow
def test_a_script_that_fails_on_every_attempt_is_an_error_with_the_last_attempts_reason(script):
    text = """
        import os
        raise ValueError("attempt " + os.environ["TORCHELASTIC_RESTART_COUNT"])
    """
    with pytest.raises(WorkerError, match="ValueError: attempt 1"):
        launch(script(text), 2, engine="torchrun", max_restarts=1)


def test_on_two_machines_rank_and_local_rank_part_ways(script):
    text = """
        import os
        import torch
        import torch.distributed as dist
        from ddp_lessons.worker import process_group, record

        with process_group():
            x = torch.tensor([dist.get_rank() + 1.0])
            dist.all_reduce(x)
            record("sum", sum=x.item(), local=int(os.environ["LOCAL_RANK"]))
    """
    run = launch(script(text), 4, nnodes=2, engine="torchrun")
    assert run.values("sum") == [10.0] * 4
    assert run.values("local") == [0, 1, 0, 1]
    assert [(r.rank, r.node, r.local_rank) for r in run] == [
        (0, 0, 0), (1, 0, 1), (2, 1, 0), (3, 1, 1)
    ]  # fmt: skip
    assert len({rank.parent for rank in run}) == 2  # one torchrun a machine
