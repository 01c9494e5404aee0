"""Rank 0 prepares a file, the others wait for it at a barrier."""

import os
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist

from ddp_lessons.worker import process_group, record

name = f"prepared_{os.environ['TORCHELASTIC_RUN_ID']}_{os.environ['MASTER_PORT']}.pt"
path = Path(tempfile.gettempdir()) / name

with process_group():
    if dist.get_rank() == 0:
        torch.randint(100, (3_000_000,)).sort()  # stands for: download, unpack, tokenize
        torch.save(torch.arange(5), path)
    record("before the barrier", before=path.exists())
    dist.barrier()
    record("after the barrier", after=path.exists())

    numbers = torch.load(path)
    record("loaded", sum=numbers.sum())
    dist.barrier()  # nobody deletes the file before all have read it
    if dist.get_rank() == 0:
        path.unlink()
