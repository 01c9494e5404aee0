import torch
import torch.distributed as dist


def all_gather(x):
    # one block of memory, one row for each rank
    n, rank = dist.get_world_size(), dist.get_rank()
    table = x.new_empty((n, *x.shape))
    table[rank].copy_(x)
    for src, row in enumerate(table):
        dist.broadcast(row, src)
    return list(table)
