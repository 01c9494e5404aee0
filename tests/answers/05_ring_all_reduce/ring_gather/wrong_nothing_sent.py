# diagnosis: no_work
import torch
import torch.distributed as dist


def ring_gather(chunks, after_step):
    rank, n = dist.get_rank(), dist.get_world_size()
    for step in range(1, n):
        chunks[(rank - step) % n].copy_(chunks[(rank - step + 1) % n])
        after_step()
