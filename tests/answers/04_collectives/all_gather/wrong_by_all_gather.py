# diagnosis: other_call
import torch
import torch.distributed as dist


def all_gather(x):
    parts = [torch.zeros_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x)
    return parts
