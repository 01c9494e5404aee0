"""BatchNorm keeps a running mean in a buffer. Mended: averaged after each forward."""

import gc
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from ddp_lessons.worker import process_group, record

mended = "mended" in sys.argv
x = torch.tensor([[0.0, 0.0, 2.0, 2.0], [-1.0, 0.0, 0.0, 0.0]])  # means 1 and -0.25

with process_group() as device:
    rank, world_size = dist.get_rank(), dist.get_world_size()
    mine = x[rank::world_size].reshape(-1, 1).to(device)
    inner = nn.BatchNorm1d(1).to(device)
    model = DDP(inner)

    for _ in range(2):
        model(mine).sum().backward()
        if mended:
            dist.all_reduce(inner.running_mean)
            inner.running_mean /= world_size
        record("step", running_mean=round(inner.running_mean.item(), 5))
    del model
    gc.collect()
    dist.barrier()
