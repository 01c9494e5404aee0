"""Each rank trains the model of exercise 08_inside_ddp/async_hooks with torch's DDP."""

import gc
import importlib
import json
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from ddp_lessons.checks.exercise import Case
from ddp_lessons.worker import process_group, record

checks = importlib.import_module("ddp_lessons.checks.08_inside_ddp")
case = Case(**json.loads(sys.argv[1]))


class Whole(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, step):
        return checks.loss(self.layers, case, dist.get_rank(), step)


with process_group():
    model = DDP(Whole(checks.build(case)), find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=checks.RATE)
    for step in range(checks.STEPS):
        optimizer.zero_grad()
        model(step).backward()
        gradients = [None if p.grad is None else p.grad.tolist() for p in model.parameters()]
        record("step", gradients=gradients)
        optimizer.step()
    del model
    gc.collect()
    dist.barrier()
