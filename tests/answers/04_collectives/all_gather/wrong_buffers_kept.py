# diagnosis: keeps_state
import torch
import torch.distributed as dist

buffers = {}


def all_gather(x):
    n = dist.get_world_size()
    if n not in buffers:
        buffers[n] = [torch.empty_like(x) for _ in range(n)]
    buffers[n][dist.get_rank()].copy_(x)
    for source in range(n):
        dist.broadcast(buffers[n][source], src=source)
    return buffers[n]
