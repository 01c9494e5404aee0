"""Three claims about DDP, tried on two ranks: weight 1, losses 1 and 3, gradients 1 and 2."""

import gc

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from ddp_lessons.worker import process_group, record


class Model(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(start))
        self.register_buffer("seen", torch.tensor(start))  # moves along, is never trained

    def forward(self, x):
        return (self.weight * x).sum()


with process_group() as device:
    rank = dist.get_rank()
    inner = Model(start=1.0 + 10 * rank).to(device)
    record("before DDP", weight_before=inner.weight.item())
    model = DDP(inner, device_ids=[device.index] if device.type == "cuda" else None)
    record("after DDP", weight=inner.weight.item())

    inner.seen.fill_(5.0 + rank)
    loss = model(torch.tensor([1.0 + rank], device=device)) + rank
    record("after the forward", buffer=inner.seen.item())
    loss.backward()
    record("after the backward", loss=loss.item(), gradient=inner.weight.grad.item())

    inner.weight.grad.fill_(1.0 + rank)  # undo the averaging
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    record("after the step", weight_after=round(inner.weight.item(), 4))
    del model
    gc.collect()
    dist.barrier()
