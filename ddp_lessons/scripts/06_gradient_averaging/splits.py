"""DDP's gradient beside that of the global batch: equal parts, unequal parts, a sum loss."""

import copy
import gc

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel as DDP

from ddp_lessons.worker import process_group, record


def gradients(model, samples, reduction):
    """The gradient of all the samples at once, and DDP's with a part of them on each rank."""
    whole = copy.deepcopy(model)
    mse_loss(whole(x[:samples]), y[:samples], reduction=reduction).backward()
    ddp = DDP(copy.deepcopy(model), device_ids=[device.index] if device.type == "cuda" else None)
    mine = slice(rank, samples, world_size)
    mse_loss(ddp(x[mine]), y[mine], reduction=reduction).backward()
    return whole.weight.grad, ddp.module.weight.grad


with process_group() as device:
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(263)
    x, y = torch.randn(7, 4).to(device), torch.randn(7, 1).to(device)
    model = nn.Linear(4, 1).to(device)

    whole, ddp = gradients(model, 6, "mean")
    record("3 and 3 samples", equal_parts=round((ddp - whole).abs().max().item(), 6))
    whole, ddp = gradients(model, 7, "mean")
    record("4 and 3 samples", unequal_parts=round((ddp - whole).abs().max().item(), 4))
    whole, ddp = gradients(model, 6, "sum")
    record("3 and 3 samples, sum", sum_loss=round((ddp / whole).mean().item(), 4))
    gc.collect()
    dist.barrier()
