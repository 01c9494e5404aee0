# diagnosis: wrong_order
import torch
import torch.distributed as dist


def all_gather(x):
    parts = [x.clone()]
    for source in range(dist.get_world_size()):
        part = x.clone()
        dist.broadcast(part, src=source)
        if source != dist.get_rank():
            parts.append(part)
    return parts
