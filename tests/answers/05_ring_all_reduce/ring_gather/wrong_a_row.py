# diagnosis: not_closed
import torch
import torch.distributed as dist


def ring_gather(chunks, after_step):
    rank, n = dist.get_rank(), dist.get_world_size()
    for step in range(1, n):
        if rank > 0:
            dist.recv(chunks[(rank - step) % n], src=rank - 1)
        if rank < n - 1:
            dist.send(chunks[(rank - step + 1) % n], dst=rank + 1)
        after_step()
