"""The same 20 steps on every rank. DDP sends the weights and averages the gradients."""

import gc

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.nn.utils import parameters_to_vector

from ddp_lessons.worker import process_group, record

digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16  # [1797, 64]
y = torch.tensor(digits.target)  # [1797]
order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
x, y = x[order], y[order]


with process_group() as device:
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)  # other weights on each rank
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)).to(device)
    model = DDP(model, device_ids=[device.index] if device.type == "cuda" else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

    for step in range(20):
        batch = slice(64 * step, 64 * step + 64)
        inputs = x[batch][rank::world_size].to(device)
        labels = y[batch][rank::world_size].to(device)
        loss = cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        gradient = parameters_to_vector(p.grad for p in model.parameters())
        record("step", gradient=gradient, parameters=parameters_to_vector(model.parameters()))
    del model
    gc.collect()
    dist.barrier()
