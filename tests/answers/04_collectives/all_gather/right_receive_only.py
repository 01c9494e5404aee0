import torch
from torch.distributed import broadcast, get_rank, get_world_size


def all_gather(x):
    me = get_rank()
    gathered = []
    for source in range(get_world_size()):
        if source == me:
            broadcast(x, src=me)  # sending does not change it
            gathered.append(x.clone())
        else:
            incoming = torch.empty_like(x)
            broadcast(incoming, src=source)
            gathered.append(incoming)
    return gathered
