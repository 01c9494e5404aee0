"""Two layers, and the forward uses only the first. With `all` it uses both."""

import gc
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.profiler import profile

from ddp_lessons.worker import process_group, record


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(1, 1, bias=False)
        self.second = nn.Linear(1, 1, bias=False)

    def forward(self, x):
        return self.first(x) + self.second(x) if "all" in sys.argv else self.first(x)


with process_group() as device:
    inner = Model().to(device)
    model = DDP(inner, find_unused_parameters="find" in sys.argv)
    x = torch.tensor([[dist.get_rank() + 1.0]], device=device)  # local gradients 1 and 2
    for _ in range(3):
        inner.zero_grad()
        with profile() as profiler:  # sees DDP's own calls, too
            model(x).sum().backward()
        calls = [event for event in profiler.events() if event.name == "c10d::allreduce_"]
        record("step", gradient=inner.first.weight.grad.item(), all_reduces=len(calls))
    del model
    gc.collect()
    dist.barrier()
