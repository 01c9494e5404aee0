from typing import NamedTuple

import torch
import torch.distributed as dist


class F(NamedTuple):
    bug: str
    rank: int
    step: int


def finding():
    return F(bug="sum", rank=1, step=8)


def average_gradients(model):
    n = dist.get_world_size()
    flat = torch.cat([p.grad.flatten() for p in model.parameters()]).div_(n)
    dist.all_reduce(flat)
    for p, g in zip(model.parameters(), flat.split([p.numel() for p in model.parameters()])):
        p.grad = g.view_as(p)
