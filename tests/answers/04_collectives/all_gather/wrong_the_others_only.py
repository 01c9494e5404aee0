# diagnosis: entries
import torch
import torch.distributed as dist


def all_gather(x):
    parts = []
    for source in range(dist.get_world_size()):
        part = x.clone()
        dist.broadcast(part, src=source)
        if source != dist.get_rank():
            parts.append(part)
    return parts
