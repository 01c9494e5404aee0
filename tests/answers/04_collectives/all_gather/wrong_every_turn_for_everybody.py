# diagnosis: too_many
import torch
import torch.distributed as dist


def all_gather(x):
    n = dist.get_world_size()
    parts = [x.clone() for _ in range(n)]
    for receiver in range(n):
        for source in range(n):
            dist.broadcast(parts[source], src=source)
    return parts
