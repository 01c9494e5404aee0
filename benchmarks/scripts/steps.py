"""Train a small model with DDP; rank 0 prints how many steps a second it took.

The number is the median over blocks of steps, so that a pause of the machine costs one block.
"""

import gc
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BLOCK = 50  # steps


def train(blocks: int) -> list[float]:
    """Seconds of each block of steps."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    ddp = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
    x, y = torch.randn(32, 64), torch.randint(10, (32,))
    seconds = []
    for _ in range(1 + blocks):
        began = time.perf_counter()
        for _ in range(BLOCK):
            optimizer.zero_grad()
            nn.functional.cross_entropy(ddp(x), y).backward()
            optimizer.step()
        seconds.append(time.perf_counter() - began)
    return seconds[1:]  # the first steps build DDP's buckets


dist.init_process_group("gloo")
seconds = train(int(sys.argv[1]))
if dist.get_rank() == 0:
    print(f"steps_per_second={BLOCK / statistics.median(seconds):.3f}", flush=True)
dist.barrier()
gc.collect()  # a DDP model that outlives the group can abort the process in interpreter shutdown
dist.destroy_process_group()
