# diagnosis: from_anybody
import torch
import torch.distributed as dist


def ring_gather(chunks, after_step):
    rank, n = dist.get_rank(), dist.get_world_size()
    for step in range(1, n):
        work = dist.isend(chunks[(rank - step + 1) % n], (rank + 1) % n)
        dist.recv(chunks[(rank - step) % n])  # only the left neighbour sends to this rank
        work.wait()
        after_step()
