# diagnosis: entries
import torch
import torch.distributed as dist


def all_gather(x):
    if dist.get_world_size() == 1:
        only = x.clone()
        dist.broadcast(only, src=0)
        return [only]
    first, second = x.clone(), x.clone()
    dist.broadcast(first, src=0)
    dist.broadcast(second, src=1)
    return [first, second]
