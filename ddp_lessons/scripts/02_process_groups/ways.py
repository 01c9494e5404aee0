"""The same meeting by file:// instead of the environment's address, and leaving twice."""

import os
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist

from ddp_lessons.worker import record

rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
# Every rank must know the same path, and the file must be new.
name = f"meet_{os.environ['TORCHELASTIC_RUN_ID']}_{os.environ['MASTER_PORT']}"
path = Path(tempfile.gettempdir()) / name

dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=world_size)
x = torch.tensor([rank + 1])
dist.all_reduce(x)
record("file", sum=x)
dist.destroy_process_group()
path.unlink(missing_ok=True)

try:
    dist.destroy_process_group()
except AssertionError as error:
    record("left twice", error=type(error).__name__)
