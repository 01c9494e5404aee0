"""Steps of DDP, traced; a hook plays a slow network. argv: MiB at which a bucket closes."""

import gc
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from ddp_lessons.worker import process_group, trace

SPEED = 300e6  # bytes a second

torch.set_num_threads(1)  # for the arithmetic


def slow(state, bucket):
    """Average as DDP does, but over a network that carries one bucket at a time, with a delay."""
    number, gradients = bucket.index(), bucket.buffer()
    average = torch.futures.Future(devices=[device] if device.type == "cuda" else None)

    def travel():
        delay = gradients.nbytes / SPEED
        with span("all-reduce", bucket=number, delay=delay):
            time.sleep(delay)
            dist.all_reduce(gradients)
            gradients.div_(dist.get_world_size())
        average.set_result(gradients)

    network.submit(travel)
    return average


with process_group() as device, ThreadPoolExecutor(1) as network, trace() as span:
    layers = [nn.Linear(1024, 1024, bias=False) for _ in range(5)]  # 4 MiB each
    model = nn.Sequential(*layers).to(device)
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(lambda _: span("gradient").end())
    model = DDP(model, bucket_cap_mb=float(sys.argv[1]) if len(sys.argv) > 1 else 4)
    model.register_comm_hook(None, slow)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    inputs = torch.randn(512, 1024, device=device)

    for step in range(12):
        dist.barrier()
        with span("forward", step=step):
            loss = model(inputs).square().mean()
        optimizer.zero_grad()
        with span("backward", step=step):
            loss.backward()
        with span("step", step=step):
            optimizer.step()
    del model
    gc.collect()
    dist.barrier()
