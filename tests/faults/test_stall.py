"""Ranks that wait for ever: at the limit the report says who waits where, for whom, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from textwrap import dedent

import pytest

from ddp_lessons import WorkerError, launch

LIMIT = 5  # seconds: time enough to reach the wait on a busy machine, several runs at once
AT_ONCE = 5  # runs; each of them mostly waits

HEAD = """
    import time
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP
    from ddp_lessons.worker import process_group, record

    with process_group():
        rank, world_size = dist.get_rank(), dist.get_world_size()
        x = torch.ones(2)
"""

SCRIPTS: dict[str, tuple[str, int]] = {}  # by the test's name: what it runs, on how many ranks


def stalls(text: str, world_size: int = 2, head: str = HEAD) -> Callable:
    """Give a test, as its argument `error`, what a launch of this script ends with."""

    def mark(test: Callable) -> Callable:
        SCRIPTS[test.__name__] = head + text.lstrip("\n"), world_size
        return test

    return mark


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory, warm: None) -> Iterator[dict[str, Future]]:
    """All the runs, some at a time: one after the other they would take minutes."""

    def run(name: str, text: str, world_size: int) -> WorkerError:
        path = tmp_path_factory.mktemp(name) / "script.py"
        path.write_text(dedent(text).lstrip("\n"))
        (path.parent / "helper.py").write_text(HELPER)
        with pytest.raises(WorkerError) as caught:
            launch(path, world_size, timeout=LIMIT)
        return caught.value

    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {name: pool.submit(run, name, *given) for name, given in SCRIPTS.items()}


@pytest.fixture
def error(request: pytest.FixtureRequest, errors: dict[str, Future]) -> WorkerError:
    return errors[request.node.name].result()


HELPER = """
import torch.distributed as dist

def average(x):
    dist.all_reduce(x)
"""


def said(error: WorkerError) -> str:
    """The first line, without its beginning."""
    return str(error).splitlines()[0].removeprefix(f"script.py: after {LIMIT} s, ")


@stalls(
    """
        if rank == 1:
            time.sleep(600)
        dist.barrier()
    """,
    3,
)
def test_a_barrier_that_one_rank_never_calls(error):
    assert error.rank == 1
    assert str(error).splitlines() == [
        f"script.py: after {LIMIT} s, "
        "ranks 0 and 2 wait in barrier, line 12; rank 1 is at line 11.",
        "  ranks 0 and 2: script.py, line 12",
        "    dist.barrier()",
        "  rank 1: script.py, line 11",
        "    time.sleep(600)",
        "  Rank 1 had not called that barrier.",
        "  If rank 1 was at work there, give the run a longer timeout=. If not, every rank of the "
        "group must make the same calls. The usual cause is a call inside `if rank == ...`, or in "
        "a loop that is longer on some ranks.",
    ]


@stalls(
    """
        dist.recv(x, src=1 - rank)
        dist.send(x, dst=1 - rank)
    """,
)
def test_two_ranks_that_both_wait_to_receive(error):
    assert error.rank is None
    assert said(error) == (
        "rank 0 waits in recv from rank 1, line 10; rank 1 waits in recv from rank 0, line 10."
    )
    assert "Each of them waits to receive, and no send that fits is on its way." in str(error)


@stalls(
    """
        dist.send(x, dst=(rank + 1) % world_size)
        dist.recv(x, src=(rank - 1) % world_size)
    """,
    3,
)
def test_ranks_that_all_send_first_in_a_circle(error):
    assert said(error) == (
        "rank 0 waits in send to rank 1, line 10; rank 1 waits in send to rank 2, line 10; "
        "rank 2 waits in send to rank 0, line 10."
    )
    assert "here all send first" in str(error)


@stalls(
    """
        if rank == 0:
            dist.recv(x, src=1)
        else:
            time.sleep(600)
    """,
)
def test_a_recv_whose_sender_has_other_things_to_do(error):
    assert error.rank == 1
    assert said(error) == "rank 0 waits in recv from rank 1, line 11; rank 1 is at line 13."
    assert "Each send needs one recv on the other side." in str(error)


@stalls(
    """
        if rank == 0:
            work = dist.all_reduce(x, async_op=True)
            work.wait()
        time.sleep(600)
    """,
)
def test_an_asynchronous_call_has_its_own_line_and_that_of_its_wait(error):
    assert said(error) == (
        "rank 0 waits for the all_reduce of line 11, line 12; rank 1 is at line 13."
    )


@stalls(
    """
        model = DDP(torch.nn.Linear(2, 1))
        for step in range(5 + rank):
            record("step", step=step)
            model(x).sum().backward()
        dist.barrier()
    """,
)
def test_the_backward_pass_of_ddp_when_one_rank_makes_fewer_steps(error):
    assert (
        said(error) == "rank 0 waits in barrier, line 14; rank 1 is in the backward pass, line 13."
    )
    assert "It looks as if rank 0 made fewer." in str(error)
    assert "  DDP's forward: 5 times on rank 0; 6 times on rank 1." in str(error)
    assert 'Recorded "step": 5 times on rank 0; 6 times on rank 1.' in str(error)


@stalls(
    """
        model = DDP(torch.nn.BatchNorm1d(2))
        model(torch.ones(3, 2)).sum().backward()
        if rank == 0:
            model.eval()
            model(torch.ones(3, 2))
        dist.barrier()
    """,
)
def test_rank_0_alone_in_the_forward_of_ddp(error):
    assert said(error) == (
        "rank 0 waits in the forward of DDP, line 14; rank 1 waits in barrier, line 15."
    )
    assert "model.module(x)" in str(error)


@stalls(
    """
        model = DDP(torch.nn.BatchNorm1d(2))
        model(torch.ones(3, 2)).sum().backward()
        model(torch.ones(3, 2)).sum().backward()
        if rank == 0:
            with torch.no_grad():
                model(torch.ones(3, 2))
        dist.barrier()
    """,
)
def test_rank_0_alone_in_the_forward_of_ddp_without_gradients_waits_for_the_buffers(error):
    assert "rank 0 waits in the forward of DDP, which sends the first rank's buffers" in said(error)


@stalls(
    """
        if rank == 0:
            DDP(torch.nn.Linear(2, 1))
        time.sleep(600)
    """,
)
def test_a_rank_alone_in_the_construction_of_ddp(error):
    assert said(error) == (
        "rank 0 waits in DDP(...), which compares the shapes, line 11; rank 1 is at line 12."
    )


@stalls(
    """
        import helper
        if rank == 0:
            helper.average(x)
        time.sleep(600)
    """,
)
def test_the_line_is_that_of_the_readers_helper_module(error):
    assert said(error) == ("rank 0 waits in all_reduce, line 5 of helper.py; rank 1 is at line 13.")
    way = (
        "  rank 0: script.py, line 12, in <module>\n    helper.average(x)\n"
        "  helper.py, line 5, in average\n    dist.all_reduce(x)\n"
    )
    assert way in str(error)


JOINS = """
    import os, time
    import torch.distributed as dist

    if os.environ["RANK"] == "1":
        time.sleep(600)
    dist.init_process_group("gloo")
"""


@stalls("", 3, head=JOINS)
def test_a_rank_that_never_joins(error):
    assert error.rank == 1
    assert said(error) == ("ranks 0 and 2 wait in init_process_group, line 6; rank 1 is at line 5.")
    assert "2 of 3 ranks have called it.\n  Rank 1 never called it." in str(error)


@stalls(
    """
        dist.barrier()
        while True:
            x = x + 1
    """,
)
def test_ranks_at_work_are_not_said_to_wait(error):
    assert error.rank is None
    assert "wait" not in said(error)
    assert "If they were at work, give them a longer timeout=." in str(error)


@stalls(
    """
        pair = dist.new_group([1, 2])
        if rank == 1:
            dist.barrier(group=pair)
        time.sleep(600)
    """,
    3,
)
def test_a_sub_group_that_waits_does_not_accuse_ranks_outside_it(error):
    assert error.rank == 2
    assert "Rank 2 had not called that barrier." in str(error)


@stalls(
    """
        import signal
        signal.signal(signal.SIGUSR2, lambda *_: print("mine", flush=True))
        if rank == 0:
            dist.barrier()
        time.sleep(600)
    """,
)
def test_a_script_that_handles_the_signal_itself_still_gets_its_report(error):
    assert said(error).startswith("rank 0 waits in barrier, line 13; rank 1 was still running.")


@pytest.mark.slow
def test_torchrun_says_who_waits_where_too(script):
    text = """
        if rank == 0:
            dist.barrier()
        time.sleep(600)
    """
    with pytest.raises(WorkerError) as caught:
        launch(script(HEAD + text.lstrip("\n")), 2, engine="torchrun", timeout=LIMIT)
    assert "rank 0 waits in barrier, line 11; rank 1 is at line 12." in str(caught.value)
