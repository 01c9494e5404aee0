"""What a script may import: process_group() and record().

Works under launch() and under bare `torchrun` alike.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

RECORDS = "DDP_LESSONS_RECORDS"  # the file that record() appends to; set by bootstrap
RAISED = "_ddp_lessons_raised"  # on an exception: the monotonic time at which it left the block
LIMIT = 1_000_000  # bytes of one record


@contextmanager
def process_group() -> Iterator[torch.device]:
    """Join the process group, yield this rank's device, and leave the group at the end.

    As many visible GPUs as local ranks: NCCL, device cuda:LOCAL_RANK. Otherwise, or where torch was
    built without NCCL, gloo on the CPU.
    Reads the environment that torchrun and launch() set; raises KeyError where they did not.
    """
    import torch
    import torch.distributed as dist

    local_rank = int(os.environ["LOCAL_RANK"])
    enough = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
    if enough and dist.is_nccl_available():
        device = torch.device("cuda", local_rank)
        torch.cuda.set_device(device)
        dist.init_process_group("nccl", device_id=device)
    else:
        device = torch.device("cpu")
        dist.init_process_group("gloo")
    try:
        yield device
    except BaseException as error:
        setattr(error, RAISED, time.monotonic())  # leaving takes a while: who failed first?
        if device.type != "cuda":  # on NCCL, leaving would wait for ranks that wait for this one
            dist.destroy_process_group()
        raise
    dist.destroy_process_group()


def record(name: str, /, **values: Any) -> None:
    """Append one line (rank, name, monotonic time in seconds, the caller's line number, values) to
    this rank's records.

    Values are numbers, text, lists, dicts or tensors (any shape or device; they become nested
    lists). Under bare torchrun, where nobody collects records, the line is printed. Raises
    ValueError for a record over 1 MB and TypeError for a value that has no JSON form.
    """
    head = {
        "rank": int(os.environ.get("RANK", 0)),
        "name": name,
        "time": time.monotonic(),
        "line": sys._getframe(1).f_lineno,
    }
    size = sum(v.numel() for v in values.values() if hasattr(v, "numel"))
    line = "" if size > LIMIT else json.dumps({**head, "values": values}, default=_plain)
    if not 0 < len(line) <= LIMIT:
        raise ValueError(
            f"record({name!r}): over 1 MB. Record a summary (a sum, a norm, a slice), "
            "not the whole tensor."
        )
    path = os.environ.get(RECORDS)
    if path is None:
        print(line + "\n", end="", flush=True)  # in one write: ranks share the terminal
        return
    with open(path, "a", encoding="utf-8") as file:
        file.write(line + "\n")


def _plain(value: Any) -> Any:
    """The JSON form of a tensor, array or number that json does not know."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(
        f"record() takes numbers, text, lists, dicts and tensors, not {type(value).__name__}"
    )
