"""A rank raises, leaves early or is killed: the guilty one is named, at once, and never a success.

Every run here has a limit that is far away: a report that comes only at the limit fails its test.
"""

from __future__ import annotations

import time

import pytest
from processes import in_groups

from ddp_lessons import WorkerError, launch, watch

LIMIT = 120
AT_ONCE = 30  # seconds, on a busy machine too

LATE = """
    import time
    import torch
    import torch.distributed as dist
    from ddp_lessons.worker import process_group

    def step(x):
        if dist.get_rank() == 1:
            time.sleep(0.3)
            raise ValueError("no such batch")
        dist.all_reduce(x)

    with process_group():
        step(torch.ones(1))
"""

ECHO_FIRST = """
    import time
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    if dist.get_rank() == 1:
        dist.destroy_process_group()
        time.sleep(2)
        raise ValueError("the reason")
    dist.all_reduce(torch.ones(1))
"""

WRAPPED_ECHO = """
    import os
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    if dist.get_rank() == 1:
        os._exit(7)
    try:
        dist.all_reduce(torch.ones(1))
    except RuntimeError:
        raise KeyError("weights")
"""

LEAVES = """
    import os, signal, sys, time
    import torch
    import torch.distributed as dist
    from ddp_lessons.worker import process_group

    when, how = sys.argv[1:]
    if when == "before" and os.environ["RANK"] == "1":
        exec(how)
    with process_group():
        dist.barrier()
        if when == "after" and os.environ["RANK"] == "1":
            exec(how)
        dist.all_reduce(torch.ones(1))
"""


def failure(*args, **options) -> WorkerError:
    """The error of a launch that has to fail at once and to leave nothing behind."""
    began = time.monotonic()
    with pytest.raises(WorkerError) as caught:
        launch(*args, timeout=LIMIT, **options)
    assert time.monotonic() - began < AT_ONCE
    error = caught.value
    assert not error.run.ok
    assert not in_groups(rank.pid for rank in error.run if rank.pid)
    return error


def test_a_rank_that_raises_late_is_named_before_the_ones_that_waited_for_it(script):
    error = failure(script(LATE), 2)
    assert error.rank == 1
    assert str(error).splitlines() == [
        "script.py: rank 1 failed first, line 9: ValueError: no such batch",
        "  script.py, line 13, in <module>",
        "    step(torch.ones(1))",
        "  script.py, line 9, in step",
        '    raise ValueError("no such batch")',
        "  The run ended there, for the other rank too.",
    ]


@pytest.mark.parametrize("engine", ["forkserver", "torchrun"])
def test_the_guilty_rank_is_named_when_its_victim_is_heard_two_seconds_earlier(script, engine):
    error = failure(script(ECHO_FIRST), 2, engine=engine)
    assert error.rank == 1
    assert str(error).startswith("script.py: rank 1 failed first, line 9: ValueError: the reason")
    assert "onnection" in error.run[0].stderr  # the victim did speak, and speak first
    assert error.run[0].ended < error.run[1].ended


def test_a_victim_that_raises_an_error_of_its_own_about_it_stays_a_victim(script):
    error = failure(script(WRAPPED_ECHO), 2)
    assert (error.rank, error.run[1].exitcode) == (1, 7)


def test_a_lost_peer_is_said_to_be_one_when_no_rank_tells_why(script, monkeypatch):
    monkeypatch.setattr(watch, "PATIENCE", 1.0)
    text = ECHO_FIRST.replace("time.sleep(2)", "time.sleep(300)")
    error = failure(script(text), 2)
    assert error.rank is None
    assert str(error).startswith(
        "script.py: rank 0 lost its connection to another rank, line 10.\n"
    )
    assert "Still running then, and stopped: rank 1." in str(error)


def test_three_ranks_of_four_are_not_blamed_for_the_one_that_raised(script):
    error = failure(script(LATE.replace("== 1", "== 2")), 4)
    assert error.rank == 2
    assert str(error).endswith("The run ended there, for the other ranks too.")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("os._exit(0)", "rank 1 left early with exit code 0, before the end of the script."),
        ("os._exit(3)", "rank 1 left early with exit code 3, before the end of the script."),
        ("sys.exit(3)", "rank 1 left early with exit code 3, line {line}."),
        ("sys.exit('no data')", 'rank 1 left early, line {line}, with the message "no data".'),
        (
            "os.kill(os.getpid(), signal.SIGKILL)",
            "rank 1 was killed by SIGKILL (signal 9): often the computer had no memory (RAM) left.",
        ),
        (
            "os.kill(os.getpid(), signal.SIGSEGV)",
            "rank 1 was killed by SIGSEGV (signal 11): a crash in native code.",
        ),
        (
            "os.kill(os.getpid(), signal.SIGBUS)",
            "rank 1 was killed by SIGBUS (signal 7): often /dev/shm is full.",
        ),
    ],
)
def test_a_rank_that_leaves_early_is_named_with_its_code_or_signal(script, how, said, when):
    error = failure(script(LEAVES), 2, args=[when, how])
    line = 8 if when == "before" else 12
    assert error.rank == 1
    assert str(error).splitlines()[0] == f"script.py: {said.format(line=line)}"


def test_a_rank_that_leaves_with_success_in_the_middle_is_named(script):
    error = failure(script(LEAVES), 2, args=["after", "sys.exit(0)"])
    assert error.rank == 1
    assert str(error).startswith("script.py: rank 1 left early with exit code 0, line 12.")


def test_every_rank_that_leaves_by_os_exit_is_seen_even_when_none_is_left_to_complain(script):
    error = failure(script("import os\nos._exit(0)\n"), 3)
    assert [rank.exitcode for rank in error.run] == [0, 0, 0]
    said = "ranks 0, 1 and 2 left early with exit code 0, before the end of the script."
    assert str(error) == f"script.py: {said}"
    assert not any(rank.finished for rank in error.run)


def test_a_child_that_a_rank_forked_cannot_write_that_ranks_end_marker(script):
    text = """
        import os
        if os.fork() == 0:
            raise SystemExit(0)
        os.wait()
        os._exit(0)
    """
    assert failure(script(text), 1).rank == 0


def test_torchrun_reports_an_early_exit_although_the_other_rank_ignores_sigterm(script):
    text = """
        import os, signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.environ["RANK"] == "1":
            os._exit(3)
        time.sleep(300)
    """
    error = failure(script(text), 2, engine="torchrun")
    assert (error.rank, error.run[1].exitcode) == (1, 3)
    assert "rank 1 left early with exit code 3" in str(error)


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV"])
def test_torchrun_names_the_signal_that_killed_a_rank(script, name, when):
    how = f"os.kill(os.getpid(), signal.{name})"
    error = failure(script(LEAVES), 2, args=[when, how], engine="torchrun")
    assert error.rank == 1
    assert f"rank 1 was killed by {name}" in str(error)


def test_an_error_that_names_a_lost_peer_does_not_excuse_the_rank_that_raised_it_alone(script):
    error = failure(script("raise ConnectionError('connection refused by the database')\n"), 1)
    said = "script.py: rank 0 failed, line 1: ConnectionError: connection refused"
    assert str(error).startswith(said)


def test_ranks_that_fail_alike_are_named_together_since_the_order_is_chance(script):
    error = failure(script("x = 1\n\nraise ValueError(x)\n"), 3)
    assert error.rank == 0
    assert str(error).splitlines()[0] == (
        "script.py: ranks 0, 1 and 2 failed, line 3: ValueError: 1"
    )
