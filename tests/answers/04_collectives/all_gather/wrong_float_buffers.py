# diagnosis: dtype
import torch
import torch.distributed as dist


def all_gather(x):
    parts = []
    for source in range(dist.get_world_size()):
        part = x.clone() if source == dist.get_rank() else torch.zeros(x.shape)
        dist.broadcast(part, src=source)
        parts.append(part)
    return parts
