# diagnosis: looked_early
import torch
import torch.distributed as dist


def ring_gather(chunks, after_step):
    rank, n = dist.get_rank(), dist.get_world_size()
    for step in range(n - 1):
        parcel = torch.empty_like(chunks[(rank - step - 1) % n])
        work = dist.isend(chunks[(rank - step) % n], (rank + 1) % n)
        dist.recv(parcel, (rank - 1) % n)
        work.wait()
        after_step()
        chunks[(rank - step - 1) % n].copy_(parcel)
