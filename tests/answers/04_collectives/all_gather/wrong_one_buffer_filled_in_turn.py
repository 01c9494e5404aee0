# diagnosis: one_buffer
import torch
import torch.distributed as dist


def all_gather(x):
    buffer = torch.zeros_like(x)
    parts = []
    for r in range(dist.get_world_size()):
        if r == dist.get_rank():
            buffer.copy_(x)
        dist.broadcast(buffer, src=r)
        parts.append(buffer)
    return parts
