# diagnosis: no_wait
import torch
import torch.distributed as dist


def ring_gather(chunks, after_step):
    n, rank = dist.get_world_size(), dist.get_rank()
    for step in range(n - 1):
        dist.isend(chunks[(rank - step) % n], (rank + 1) % n)
        dist.recv(chunks[(rank - step - 1) % n], (rank - 1) % n)
        after_step()
