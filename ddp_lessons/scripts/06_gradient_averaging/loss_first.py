"""The loss is averaged before the backward, in the hope that its gradient is averaged, too."""

import torch
import torch.distributed as dist

from ddp_lessons.worker import process_group, record

with process_group() as device:
    weight = torch.ones(1, device=device, requires_grad=True)
    x = dist.get_rank() + 1.0  # 1 and 2, and so is the gradient of weight * x

    loss = (weight * x).sum()
    dist.all_reduce(loss)
    loss /= dist.get_world_size()
    loss.backward()

    record("after the backward", loss=loss.item(), gradient=weight.grad.item())
    dist.barrier()
