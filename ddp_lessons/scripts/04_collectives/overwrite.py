"""Two calls that overwrite their tensor: broadcast and all_reduce."""

import torch
import torch.distributed as dist

from ddp_lessons.worker import process_group, record

with process_group() as device:
    rank, n = dist.get_rank(), dist.get_world_size()
    mine = torch.arange(1, n + 1, device=device) * 10**rank  # ones from rank 0, tens from rank 1

    x = mine.clone()
    record("before broadcast", x=x)
    dist.broadcast(x, src=0)
    record("after broadcast", x=x)

    x = mine.clone()
    record("before all_reduce", x=x)
    y = dist.all_reduce(x)
    record("after all_reduce", x=x, y=y)
