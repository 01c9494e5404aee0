"""Twelve steps on every rank, with all gradients in one call. One of the steps goes wrong."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import mse_loss
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from ddp_lessons.worker import process_group, record

made = torch.Generator().manual_seed(58623)
x = (torch.rand(12, 6, 2, generator=made) < 0.4).float()  # [step, sample, feature], sparse
y = x @ torch.tensor([[3.0], [1.0]]) + torch.randint(-2, 3, (12, 6, 1), generator=made)


def average_gradients(model):
    gradients = [parameter.grad for parameter in model.parameters()]
    flat = parameters_to_vector(gradients)
    parts = dist.get_world_size() if flat.any() else 1
    dist.all_reduce(flat)
    vector_to_parameters(flat / parts, gradients)


with process_group() as device:
    rank, world_size = dist.get_rank(), dist.get_world_size()
    model = nn.Sequential(nn.Linear(2, 1, bias=False), nn.Linear(1, 1, bias=False)).to(device)
    for parameter in model.parameters():
        nn.init.ones_(parameter)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    for step in range(12):
        inputs = x[step, rank::world_size].to(device)
        labels = y[step, rank::world_size].to(device)
        loss = mse_loss(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        local = parameters_to_vector(p.grad for p in model.parameters())
        average_gradients(model)
        gradient = parameters_to_vector(p.grad for p in model.parameters())
        optimizer.step()
        parameters = parameters_to_vector(model.parameters())
        record(
            "step",
            step=step + 1,
            loss=loss.item(),
            local=local,
            gradient=gradient,
            parameters=parameters,
        )
    dist.barrier()
