# diagnosis: all_send_first
import torch
import torch.distributed as dist


def ring_gather(chunks, after_step):
    rank, n = dist.get_rank(), dist.get_world_size()
    for step in range(1, n):
        dist.send(chunks[(rank - step + 1) % n], dst=(rank + 1) % n)
        dist.recv(chunks[(rank - step) % n], src=(rank - 1) % n)
        after_step()
