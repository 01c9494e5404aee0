"""What only the real torchrun does: restarts, and a group on several machines."""

from __future__ import annotations

import os
from contextlib import nullcontext

import pytest

from ddp_lessons import WorkerError, engines, launch, live

RESUMES = """
    import os, sys
    import torch
    import torch.distributed as dist
    from ddp_lessons.worker import process_group, record

    path = sys.argv[1]
    first = torch.load(path)["epoch"] + 1 if os.path.exists(path) else 0
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    print(f"attempt {attempt} starts at epoch {first}")
    record("began", attempt=attempt, first=first)
    with process_group():
        for epoch in range(first, 4):
            if attempt == 0 and epoch == 2 and dist.get_rank() == 1:
                os._exit(3)
            dist.barrier()
            if dist.get_rank() == 0:
                torch.save({"epoch": epoch}, path)
            record("epoch", epoch=epoch)
            dist.barrier()
"""


def test_a_rank_that_exits_on_attempt_zero_is_started_again_where_the_checkpoint_says(
    script, tmp_path
):
    path = script(RESUMES)
    run = launch(path, 2, engine="torchrun", max_restarts=1, args=[tmp_path / "saved.pt"])
    assert (run.ok, run.attempt) == (True, 1)
    assert run.values("attempt") == [1, 1]
    assert run.values("first") == [2, 2]
    assert [one.values["epoch"] for one in run[0].records if one.name == "epoch"] == [2, 3]
    assert [rank.stdout for rank in run] == ["attempt 1 starts at epoch 2\n"] * 2


def test_the_time_that_torchrun_takes_to_start_is_not_taken_from_the_ranks(script, monkeypatch):
    said = []
    monkeypatch.setattr(live, "shown", lambda *told: said.append(told[-1]) or nullcontext([]))
    # Each of three processes imports torch, the ranks after their agent.
    run = launch(script("print('here')"), 2, engine="torchrun", timeout=1)
    assert [rank.stdout for rank in run] == ["here\n"] * 2
    launch(script("print('here')"), 2, timeout=30)
    assert said == ["1 s once all ranks have come to the script", "30 s"]


def test_ranks_that_have_begun_under_torchrun_have_no_more_than_their_time(script):
    text = """
        import time
        from ddp_lessons.worker import record

        record("began", at=time.monotonic())
        while True:
            record("lives", at=time.monotonic())
            time.sleep(0.1)
    """
    with pytest.raises(WorkerError, match="after 2 s") as caught:
        launch(script(text), 2, engine="torchrun", timeout=2)
    records = caught.value.run.records
    last = max(one.time for one in records)
    assert last - max(one.time for one in records if one.name == "began") < 30  # start has 180


def late(folder, condition: str, seconds: int) -> dict[str, str]:
    """An environment in which Python itself starts late in some processes."""
    (folder / "sitecustomize.py").write_text(
        f"import os, time\nif {condition}:\n    time.sleep({seconds})\n"
    )
    return {"PYTHONPATH": str(folder)}


@pytest.mark.slow
def test_what_ends_before_the_limit_is_not_said_to_have_come_to_it(script, tmp_path):
    text = """
        import os, sys
        from ddp_lessons.worker import process_group

        if os.environ["RANK"] == "1":
            sys.exit()
        with process_group():
            pass
    """
    path, env = script(text), late(tmp_path, "os.environ.get('RANK') == '0'", 15)
    with pytest.raises(WorkerError) as caught:
        launch(path, 2, engine="torchrun", timeout=15, env=env)
    assert str(caught.value).startswith("script.py: rank 0 waits in init_process_group, line 6; ")


def test_a_rank_that_never_comes_to_the_script_is_named_with_the_seconds_that_it_had(
    script, tmp_path, monkeypatch
):
    monkeypatch.setitem(engines.SLOW, "torchrun", 20)
    env = late(tmp_path, "os.environ.get('RANK') == '1'", 600)
    with pytest.raises(WorkerError, match=r"1 had not come to the script after 21 s\. Python's"):
        launch(script("print('here')"), 2, engine="torchrun", timeout=1, env=env)


def test_the_first_line_names_the_rank_that_raised_although_another_one_sleeps(script):
    text = """
        import os, time
        if os.environ["RANK"] == "1":
            raise ValueError("no such file")
        time.sleep(600)
    """
    with pytest.raises(WorkerError) as caught:
        launch(script(text), 2, engine="torchrun", timeout=120)
    assert str(caught.value).splitlines()[:3] == [
        "script.py: rank 1 failed first, line 3: ValueError: no such file",
        "  script.py, line 3, in <module>",
        '    raise ValueError("no such file")',
    ]
    assert len(str(caught.value).splitlines()) <= 5


@pytest.mark.slow
def test_a_script_that_fails_on_every_attempt_is_an_error_with_the_last_attempts_reason(script):
    text = """
        import os
        raise ValueError("attempt " + os.environ["TORCHELASTIC_RESTART_COUNT"])
    """
    with pytest.raises(WorkerError, match="ValueError: attempt 1"):
        launch(script(text), 2, engine="torchrun", max_restarts=1)


def test_on_two_machines_rank_and_local_rank_part_ways_and_share_the_cores(script, monkeypatch):
    text = """
        import os
        import torch
        import torch.distributed as dist
        from ddp_lessons.worker import process_group, record

        with process_group():
            x = torch.tensor([dist.get_rank() + 1.0])
            dist.all_reduce(x)
            record("sum", sum=x.item(), local=int(os.environ["LOCAL_RANK"]))
            record("threads", asked=os.environ["OMP_NUM_THREADS"], used=torch.get_num_threads())
    """
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    run = launch(script(text), 4, nnodes=2, engine="torchrun")
    share = max(1, len(os.sched_getaffinity(0)) // 4)
    assert run.values("used") == [share] * 4
    assert run.values("asked") == [str(share)] * 4
    said = [log.read_text() for log in run.log.glob("agent_*.log")]
    assert [text for text in said if "OMP_NUM_THREADS" in text] == []  # torchrun's banner
    assert len(said) == 2
    assert run.values("sum") == [10.0] * 4
    assert run.values("local") == [0, 1, 0, 1]
    assert [(r.rank, r.node, r.local_rank) for r in run] == [
        (0, 0, 0), (1, 0, 1), (2, 1, 0), (3, 1, 1)
    ]  # fmt: skip
    assert len({rank.parent for rank in run}) == 2  # one torchrun a machine
