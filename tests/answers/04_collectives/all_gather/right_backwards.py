import torch
import torch.distributed as dist

world = dist.group.WORLD


def all_gather(x):
    # From the last rank to the first: any order will do if it is the same on all ranks.
    result = [None] * dist.get_world_size(world)
    for i in reversed(range(len(result))):
        result[i] = torch.zeros_like(x)
        if i == dist.get_rank(world):
            result[i] += x
        dist.broadcast(result[i], i, group=world)
    return result
