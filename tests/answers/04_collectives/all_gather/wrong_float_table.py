# diagnosis: dtype
import torch
import torch.distributed as dist


def all_gather(x):
    n = dist.get_world_size()
    parts = [torch.empty(x.size()) for _ in range(n)]
    parts[dist.get_rank()].copy_(x)
    for source in range(n):
        dist.broadcast(parts[source], src=source)
    return parts
