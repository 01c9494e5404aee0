"""by_hand.py, but nobody divides: the sum in place of the mean. With SGD or with Adam."""

import sys

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import parameters_to_vector

from ddp_lessons.worker import process_group, record

digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16  # [1797, 64]
y = torch.tensor(digits.target)  # [1797]
order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
x, y = x[order], y[order]


def send_weights(model):
    for tensor in model.state_dict().values():
        dist.broadcast(tensor, src=0)


def add_up_gradients(model):
    for parameter in model.parameters():
        if parameter.requires_grad:
            dist.all_reduce(parameter.grad)  # now the sum, and nobody divides


with process_group() as device:
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)  # other weights on each rank
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)).to(device)
    send_weights(model)  # rank 0's weights on all of them
    if "Adam" in sys.argv:
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

    for step in range(20):
        batch = slice(64 * step, 64 * step + 64)
        inputs = x[batch][rank::world_size].to(device)
        labels = y[batch][rank::world_size].to(device)
        loss = cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        add_up_gradients(model)
        optimizer.step()
        gradient = parameters_to_vector(p.grad for p in model.parameters())
        record("step", gradient=gradient, parameters=parameters_to_vector(model.parameters()))
    dist.barrier()
