"""Rank 0 makes 5 steps and rank 1 makes 6. Mended: inside Join."""

import gc
import sys
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.nn.utils import parameters_to_vector

from ddp_lessons.worker import process_group, record

mended = "mended" in sys.argv

with process_group() as device:
    rank = dist.get_rank()
    x = torch.tensor([[rank + 1.0]], device=device)  # local gradients 1 and 2
    torch.manual_seed(0)
    model = DDP(nn.Linear(1, 1, bias=False).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    with Join([model]) if mended else nullcontext():
        for _ in range(5 + rank):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
    dist.barrier()
    record("end", steps=5 + rank, parameters=parameters_to_vector(model.parameters()))
    del model
    gc.collect()
    dist.barrier()
