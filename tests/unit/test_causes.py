"""What torch says, word for word, and what the reader is told instead."""

from __future__ import annotations

import pytest

from ddp_lessons.causes import PATTERNS, translate

UNUSED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This "
    "error indicates that ... {}Parameter indices which did not receive grad for rank 0: 2 3\n In"
)
SAID = [
    (
        "\n        An attempt has been made to start a new process before the\n        current "
        "process has finished its bootstrapping phase.\n\n        This probably means that ...",
        "the file starts processes while it is imported",
    ),
    (
        "Caught ValueError in DataLoader worker process 0.\nOriginal Traceback (most recent call "
        'last):\n  File "/lib/fetch.py", line 52, in <listcomp>\n    ...\n'
        '  File "/home/data.py", line 9, in __getitem__\n    raise ValueError("bad sample 9")\n'
        "ValueError: bad sample 9\n",
        "bad sample 9 (in worker process 0 of a DataLoader: data.py, line 9, in __getitem__)",
    ),
    (
        "Can't pickle <function <lambda> at 0x7f2a1c0d3e20>: attribute lookup <lambda> on __main__ "
        "failed",
        "cannot be given the function <lambda>: it looks for a function by its name",
    ),
    ("Can't pickle local object 'main.<locals>.demo'", "the function main.<locals>.demo: "),
    ("Can't get local object 'main.<locals>.demo'", "the function main.<locals>.demo: "),
    ("cannot pickle '_io.TextIOWrapper' object", "an object of type _io.TextIOWrapper"),
    (UNUSED.format(""), "the parameters with the numbers 2 3 took no part in the loss"),
    (
        UNUSED.format("Parameters which did not receive grad for rank 0: b.bias, b.weight\n"),
        "b.bias, b.weight took no part in the loss",
    ),
    (
        "[enforce fail at /src/gloo/transport/tcp/device.cc:84] ifa != nullptr. "
        "Unable to find address for: utun99",
        "no network interface utun99, which GLOO_SOCKET_IFNAME asks for",
    ),
    ("Distributed package doesn't have NCCL built in", 'Use "gloo", or process_group()'),
    (
        "Distributed package doesn't have MPI built in. MPI is only included if you build PyTorch "
        "from source on a host that has MPI installed.",
        'backend "mpi", which this build of torch does not have',
    ),
    ("Unknown c10d backend type UCC", 'backend "ucc"'),
    ("Torch not compiled with CUDA enabled", "for the CPU alone"),
    ("module 'torch._C' has no attribute '_cuda_setDevice'", "for the CPU alone"),
    (
        "The server socket has failed to listen on any local network address. port: 29500, "
        "useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
        "port 29500 is taken by another program",
    ),
    (
        "Timed out after 3 seconds waiting for clients. 1/2 clients joined.",
        "1 of 2 ranks came before the script's own time limit. Each rank is a process of its own",
    ),
    (
        "The client socket has timed out after 4000ms while trying to connect to (10.0.0.7, 123).",
        "nobody answered at 10.0.0.7, port 123, where rank 0 should be, for 4 s",
    ),
    (
        "wait timeout after 2500ms, keys: /default_pg/0//cpu//0/3",
        "rank 3 had not come to init_process_group after 2.5 s",
    ),
    ("wait timeout after 2000ms, keys: /2//cpu//0/1", "a rank of the new group had not come"),
    (
        "[/src/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 2000ms for recv "
        "operation to complete",
        "another rank had not made the same call after 2 s",
    ),
    (
        "[/src/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:4519. This is "
        "typically caused by a remote worker crashing. Check the logs of the remote worker.",
        "the connection to another rank broke",
    ),
    (
        "Gloo connectFullMesh failed with [/src/gloo/transport/tcp/pair.cc:152] timed out "
        "connecting: SO_ERROR: Connection refused, remote=[127.0.0.1]:38827$0",
        "the connection to another rank broke",
    ),
    (
        "[enforce fail at /src/gloo/context.cc:23] rank < size. 2 vs 2",
        "rank 2 in a world of 2: ranks count from 0",
    ),
    ("No backend type associated with device type cuda", "a tensor on cuda"),
    (
        "NCCL error in: ProcessGroupNCCL.cpp:1, invalid usage, NCCL version 2.29.7\n"
        "Last error:\nDuplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000",
        "two ranks use the same GPU",
    ),
]


@pytest.mark.parametrize(("message", "told"), SAID)
def test_a_known_cause_is_told_in_one_line_that_says_what_to_do(message, told):
    said = translate(message)
    assert told in said
    assert "\n" not in said and said.endswith(".") and "{" not in said


def test_every_known_cause_has_an_example_here():
    first = [[p for p, _ in PATTERNS if p.search(message)][0] for message, _ in SAID]
    assert {*first} == {pattern for pattern, _ in PATTERNS}


@pytest.mark.parametrize("message", ["", "no such batch", "port: 80", "1/2 of the clients joined"])
def test_all_other_messages_are_left_alone(message):
    assert translate(message) is None
