import torch
import torch.distributed as dist
from torch.distributed import recv, send


def ring_gather(chunks, after_step):
    rank = dist.get_rank()
    n = dist.get_world_size()
    for step in range(n - 1):
        mine = chunks[rank - step]  # a negative index counts from the end
        other = chunks[rank - step - 1]
        if rank % 2 == 0:
            send(mine, (rank + 1) % n)
            recv(other, (rank - 1) % n)
        else:
            recv(other, (rank - 1) % n)
            send(mine, (rank + 1) % n)
        after_step()
