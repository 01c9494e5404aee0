# diagnosis: own_source
import torch
import torch.distributed as dist


def all_gather(x):
    n, rank = dist.get_world_size(), dist.get_rank()
    parts = [x.clone() for _ in range(n)]
    for i in range(n):
        source = (rank + i) % n
        dist.broadcast(parts[source], src=source)
    return parts
