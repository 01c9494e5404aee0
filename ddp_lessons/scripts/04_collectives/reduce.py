"""reduce: the sum is for one rank. What do the others hold afterwards?"""

import torch
import torch.distributed as dist

from ddp_lessons.worker import process_group, record

with process_group() as device:
    rank, n = dist.get_rank(), dist.get_world_size()
    x = torch.arange(1, n + 1, device=device) * 10**rank

    record("before reduce", x=x)
    dist.reduce(x, dst=0)
    record("after reduce", x=x)
    dist.barrier()
