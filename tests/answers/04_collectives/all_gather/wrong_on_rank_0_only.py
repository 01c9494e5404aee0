# diagnosis: nothing_returned
import torch
import torch.distributed as dist


def all_gather(x):
    parts = []
    for source in range(dist.get_world_size()):
        part = x.clone()
        dist.broadcast(part, src=source)
        parts.append(part)
    if dist.get_rank() == 0:
        return parts
