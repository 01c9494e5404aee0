"""Two groups of ranks, even and odd, each with a sum of its own."""

import torch
import torch.distributed as dist

from ddp_lessons.worker import process_group, record

with process_group() as device:
    rank, n = dist.get_rank(), dist.get_world_size()
    even = dist.new_group(range(0, n, 2))  # every rank makes both groups
    odd = dist.new_group(range(1, n, 2))

    x = torch.tensor([10**rank], device=device)
    record("before all_reduce", x=x)
    dist.all_reduce(x, group=even if rank % 2 == 0 else odd)
    record("after all_reduce", x=x)
