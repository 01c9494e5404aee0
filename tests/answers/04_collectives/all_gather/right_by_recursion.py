import torch
import torch.distributed as dist


def from_rank(x, source):
    if source == dist.get_world_size():
        return []
    t = x.detach().clone()
    dist.broadcast(tensor=t, src=source)
    return [t] + from_rank(x, source + 1)


def all_gather(x):
    return from_rank(x, 0)
