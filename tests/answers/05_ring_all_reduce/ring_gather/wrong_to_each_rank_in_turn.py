# diagnosis: not_the_ring
import torch
import torch.distributed as dist


def ring_gather(chunks, after_step):
    rank, n = dist.get_rank(), dist.get_world_size()
    for step in range(1, n):
        source, target = (rank - step) % n, (rank + step) % n
        work = dist.isend(chunks[rank], target)
        dist.recv(chunks[source], source)
        work.wait()
        after_step()
