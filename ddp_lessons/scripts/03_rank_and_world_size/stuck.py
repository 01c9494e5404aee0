"""Rank 0 prepares something, then all ranks add up."""

import torch
import torch.distributed as dist

from ddp_lessons.worker import process_group, record

with process_group() as device:
    if dist.get_rank() == 0:
        record("prepared")
        dist.barrier()

    x = torch.tensor([dist.get_rank() + 1], device=device)
    dist.all_reduce(x)
    record("added", sum=x.item())
