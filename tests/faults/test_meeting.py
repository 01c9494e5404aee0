"""Ranks that cannot meet: what torch says in its own way is told in a sentence that helps."""

from __future__ import annotations

import socket

import pytest

from ddp_lessons import WorkerError, launch

FAR = 120  # seconds: what is told at the limit alone fails its test
pytestmark = pytest.mark.usefixtures("warm")


def report(*args, timeout: float = FAR, **options) -> str:
    with pytest.raises(WorkerError) as caught:
        launch(*args, timeout=timeout, **options)
    text = str(caught.value)
    assert "enforce fail" not in text and ".cc:" not in text
    return text


@pytest.fixture
def busy():
    """A port of this machine that somebody else listens on."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        yield held.getsockname()[1]


def test_an_interface_that_does_not_exist_is_named_with_who_asked_for_it(script):
    text = """
        import torch.distributed as dist
        dist.init_process_group("gloo")
    """
    said = report(script(text), 2, env={"GLOO_SOCKET_IFNAME": "utun99"})
    assert said.startswith(
        "script.py: ranks 0 and 1 failed, line 2: RuntimeError: this machine has no network "
        "interface utun99, which GLOO_SOCKET_IFNAME asks for."
    )


def test_nccl_on_a_build_without_it_is_told_with_the_way_out(script):
    text = """
        import torch.distributed as dist
        dist.distributed_c10d._NCCL_AVAILABLE = False  # where there is a CUDA build, too
        dist.init_process_group("nccl")
    """
    said = report(script(text), 2)
    assert said.startswith(
        'script.py: ranks 0 and 1 failed, line 3: RuntimeError: backend "nccl", and this build of '
        'torch has no NCCL. Use "gloo", or process_group()'
    )


def test_a_hard_coded_port_that_is_busy_is_named(script, busy):
    text = """
        import os, sys
        import torch.distributed as dist
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{sys.argv[1]}",
                                rank=int(os.environ["RANK"]), world_size=2)
    """
    said = report(script(text), 2, args=[busy], timeout=2)
    where = f"They meet at tcp://127.0.0.1:{busy}, where this launch serves nobody"
    assert any(where in line for line in said.splitlines())


def test_a_store_of_the_scripts_own_on_a_busy_port_is_told_with_the_port(script, busy):
    text = """
        import os, sys
        import torch.distributed as dist
        dist.TCPStore("127.0.0.1", int(sys.argv[1]), 2, os.environ["RANK"] == "0")
    """
    said = report(script(text), 2, args=[busy])
    start = "script.py: rank 0 failed first, line 3: DistNetworkError: port"
    assert said.startswith(f"{start} {busy} is taken by another program")


def test_one_process_that_waits_for_a_world_of_two_is_told_that_it_is_alone(script):
    text = """
        import datetime, os
        import torch.distributed as dist
        del os.environ["TORCHELASTIC_USE_AGENT_STORE"]  # as in a notebook's kernel
        dist.init_process_group("gloo", init_method="tcp://127.0.0.1:0", rank=0, world_size=2,
                                timeout=datetime.timedelta(seconds=4))
    """
    said = report(script(text), 1)
    assert said.startswith(
        "script.py: rank 0 failed, line 4: DistStoreError: 1 of 2 ranks came before the script's "
        "own time limit. Each rank is a process of its own"
    )


def test_a_rank_that_is_late_for_the_scripts_own_limit_is_named(script):
    text = """
        import datetime, os, time
        import torch.distributed as dist
        if os.environ["RANK"] == "2":
            time.sleep(600)
        dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=1))
    """
    said = report(script(text), 3)
    assert "line 5: DistStoreError: rank 2 had not come to init_process_group after 1 s" in said


@pytest.mark.parametrize("guilty", [0, 1])
def test_a_rank_that_leaves_before_the_meeting_is_named_with_its_code(script, guilty):
    text = """
        import os, sys
        import torch.distributed as dist
        if os.environ["RANK"] == sys.argv[1]:
            sys.exit(3)
        dist.init_process_group("gloo")
    """
    said = report(script(text), 2, args=[guilty])
    assert said.startswith(f"script.py: rank {guilty} left early with exit code 3, line 4")
