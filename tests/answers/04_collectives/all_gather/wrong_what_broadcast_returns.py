# diagnosis: from_return
import torch
import torch.distributed as dist


def all_gather(x):
    parts = []
    for source in range(dist.get_world_size()):
        parts.append(dist.broadcast(x.clone(), src=source))
    return parts
