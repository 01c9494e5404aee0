"""The whole life of a DDP model, one step long, and what torch's profiler sees of it."""

import gc

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from ddp_lessons.worker import process_group, trace

with process_group() as device:
    layers = nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)
    model = nn.Sequential(*layers).to(device)  # 38 parameters, 9 numbers in buffers
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs = torch.ones(3, 4, device=device)

    with trace() as span:
        with span("wrap"):
            model = DDP(model, device_ids=[device.index] if device.type == "cuda" else None)
        with span("forward"):
            loss = model(inputs).sum()
        with span("backward"):
            loss.backward()
        with span("step"):
            optimizer.step()

    del model
    gc.collect()
    dist.barrier()
