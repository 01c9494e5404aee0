"""A frozen weight is unfrozen after DDP has wrapped the model. Mended: wrapped anew."""

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
    inner = nn.Linear(1, 1).to(device)
    inner.weight.requires_grad_(False)
    model = DDP(inner, find_unused_parameters="find" in sys.argv)
    inner.weight.requires_grad_(True)  # the wrapper has not noted it
    if mended:
        model = DDP(inner)  # wrapped anew
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    for _ in range(4):
        loss = model(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        record("step", parameters=parameters_to_vector(model.parameters()))
    record("end", gradient=inner.weight.grad.item())
    del model
    gc.collect()
    dist.barrier()
