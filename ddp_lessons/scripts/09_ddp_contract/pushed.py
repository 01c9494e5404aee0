"""One rank writes into its weight, in step 2. Mended: every rank makes the same write."""

import gc
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.nn.utils import parameters_to_vector

from ddp_lessons.worker import process_group, record

mended = "mended" in sys.argv

with process_group() as device:
    rank, world_size = dist.get_rank(), dist.get_world_size()
    x = torch.tensor([[1.0], [2.0]])[rank::world_size].to(device)  # local gradients 1 and 2
    torch.manual_seed(0)
    inner = nn.Linear(1, 1, bias=False).to(device)
    model = DDP(inner)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    for step in range(4):
        loss = model(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 1 and (mended or rank == 1):
            inner.weight.data += 1
        record("step", parameters=parameters_to_vector(model.parameters()))
    del model
    gc.collect()
    dist.barrier()
