# diagnosis: own_source
import torch
import torch.distributed as dist


def all_gather(x):
    rank = dist.get_rank()
    parts = [torch.zeros_like(x) for _ in range(dist.get_world_size())]
    parts[rank] = x.clone()
    for part in parts:
        dist.broadcast(part, src=rank)
    return parts
