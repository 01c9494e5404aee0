"""Rank 0 evaluates alone, through DDP. Mended: through the inner model."""

import gc
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from ddp_lessons.worker import process_group, record

mended = "mended" in sys.argv

with process_group() as device:
    model = DDP(nn.BatchNorm1d(1).to(device))
    x = torch.tensor([[1.0], [2.0]], device=device)
    model(x).sum().backward()

    model.eval()
    if dist.get_rank() == 0:
        with torch.no_grad():
            output = model.module(x) if mended else model(x)
    dist.barrier()
    record("after the barrier", met=True)
    del model
    gc.collect()
    dist.barrier()
