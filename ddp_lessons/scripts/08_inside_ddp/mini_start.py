"""A miniature DDP, second part: and all ranks start from rank 0's model."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.utils import parameters_to_vector

from ddp_lessons.worker import process_group, record


def average(parameter):
    dist.all_reduce(parameter.grad)
    parameter.grad /= dist.get_world_size()


class MiniDDP(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        for tensor in module.state_dict().values():
            dist.broadcast(tensor, src=0)
        for parameter in module.parameters():
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(average)

    def forward(self, inputs):
        return self.module(inputs)


with process_group() as device:
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)  # other weights on each rank
    model = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Linear(6, 2)).to(device)
    model = MiniDDP(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = torch.randn(5, 24, 6, generator=torch.Generator().manual_seed(0))

    for batch in batches:
        loss = model(batch[rank::world_size].to(device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        gradients = parameters_to_vector(p.grad for p in model.parameters())
        buffers = torch.cat([b.float().flatten() for b in model.buffers()])
        parameters = parameters_to_vector(model.parameters())
        record("step", gradients=gradients, parameters=parameters, buffers=buffers)
    dist.barrier()
