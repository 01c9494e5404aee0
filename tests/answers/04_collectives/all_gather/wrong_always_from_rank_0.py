# diagnosis: one_source
import torch
import torch.distributed as dist


def all_gather(x):
    parts = [x.clone() for _ in range(dist.get_world_size())]
    for part in parts:
        dist.broadcast(part, src=0)
    return parts
