# diagnosis: own_source
import torch
import torch.distributed as dist


def all_gather(x):
    parts = [x.clone() for _ in range(dist.get_world_size())]
    for source in range(dist.get_world_size()):
        if dist.get_rank() == source:
            dist.broadcast(parts[source], src=source)
    return parts
