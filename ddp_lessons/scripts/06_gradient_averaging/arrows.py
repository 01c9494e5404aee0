"""One gradient of a model with two parameters: each rank's own, their sum and their mean."""

import torch
import torch.distributed as dist
from torch.nn.functional import mse_loss

from ddp_lessons.worker import process_group, record

# Chosen so that the gradient of a single sample is that sample's x.
x = torch.tensor([[0.0, 3.0], [3.0, 0.0], [2.0, 1.0], [1.0, 2.0]])
y = torch.full((4,), -0.5)

with process_group() as device:
    rank, world_size = dist.get_rank(), dist.get_world_size()
    mine = slice(rank, None, world_size)  # x[mine] is x[rank::world_size]
    w = torch.zeros(2, device=device, requires_grad=True)

    loss = mse_loss(x[mine].to(device) @ w, y[mine].to(device))
    loss.backward()
    record("own part", local=w.grad)

    dist.all_reduce(w.grad)
    record("added up", sum=w.grad)
    w.grad /= world_size
    record("averaged", mean=w.grad)
