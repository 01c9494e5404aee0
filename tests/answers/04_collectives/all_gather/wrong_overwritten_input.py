# diagnosis: changed_input
import torch
import torch.distributed as dist


def all_gather(x):
    out = []
    for r in range(dist.get_world_size()):
        b = x
        dist.broadcast(b, src=r)
        out.append(b)
    return out
