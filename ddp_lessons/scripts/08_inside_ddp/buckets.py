"""Which gradients travel together: a communication hook notes each bucket of three steps."""

import gc

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel as DDP

from ddp_lessons.worker import process_group, record


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Linear(8, 8, bias=False)  # defined first, used last
        self.a = nn.Linear(8, 8, bias=False)
        self.b = nn.Linear(8, 8, bias=False)
        self.c = nn.Linear(8, 8, bias=False)

    def forward(self, x):
        return self.last(self.c(self.b(self.a(x))))


def note(step, bucket):
    layers = [names[id(parameter)] for parameter in bucket.parameters()]
    size = bucket.buffer().nbytes
    record("bucket", step=step[0], number=bucket.index(), layers=layers, bytes=size)
    return allreduce_hook(None, bucket)  # DDP's own averaging


with process_group() as device:
    net = Net().to(device)
    names = {id(parameter): name.split(".")[0] for name, parameter in net.named_parameters()}
    two_layers = 2 * 8 * 8 * 4 / 2**20  # MiB
    model = DDP(
        net,
        device_ids=[device.index] if device.type == "cuda" else None,
        bucket_cap_mb=two_layers,
    )
    step = [0]
    model.register_comm_hook(step, note)

    for step[0] in (1, 2, 3):
        model(torch.ones(4, 8, device=device)).sum().backward()
    del model
    gc.collect()
    dist.barrier()
