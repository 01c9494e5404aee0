"""all_gather into as many tensors as ranks, and into one tensor that is listed as often."""

import torch
import torch.distributed as dist

from ddp_lessons.worker import process_group, record

with process_group() as device:
    rank, n = dist.get_rank(), dist.get_world_size()
    x = torch.arange(1, n + 1, device=device) * 10**rank

    parts = [torch.zeros_like(x) for _ in range(n)]
    record("before all_gather", x=x, parts=parts)
    dist.all_gather(parts, x)
    record("after all_gather", x=x, parts=parts)

    buffer = torch.zeros_like(x)
    copies = [buffer] * n
    record("before all_gather, [buffer] * n", x=x, copies=copies)
    dist.all_gather(copies, x)
    record("after all_gather, [buffer] * n", x=x, copies=copies)
