"""A script that starts its own ranks: a toy model, and one step of DDP on each rank."""

import gc
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from ddp_lessons.worker import record

NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT")


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(10, 10)
        self.out = nn.Linear(10, 5)

    def forward(self, x):
        return self.out(torch.relu(self.hidden(x)))


def demo(rank, world_size, port):
    record("environment", **{name: os.environ.get(name) for name in NAMES})
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    model = DDP(ToyModel())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(rank)  # other samples on each rank
    loss = nn.functional.mse_loss(model(torch.randn(20, 10)), torch.randn(20, 5))
    loss.backward()
    optimizer.step()
    weights = sum(p.sum() for p in model.parameters()).detach()
    highest = weights.clone()
    dist.all_reduce(highest, op=dist.ReduceOp.MAX)
    record("step", rank=rank, alike=bool(weights == highest))
    del model, optimizer
    gc.collect()
    dist.destroy_process_group()


if __name__ == "__main__":
    world_size = int(os.environ.pop("WORLD_SIZE", 2))  # launch() sets it, mp.spawn does not
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.spawn(demo, args=(world_size, port), nprocs=world_size)
