# diagnosis: too_much
import torch
import torch.distributed as dist


def ring_gather(chunks, after_step):
    rank, n = dist.get_rank(), dist.get_world_size()
    for step in range(1, n):
        works = []
        for k in range(step):  # the chunks that are finished here
            works.append(dist.isend(chunks[(rank - k) % n].clone(), (rank + 1) % n))
            dist.recv(chunks[(rank - 1 - k) % n], (rank - 1) % n)
        for work in works:
            work.wait()
        after_step()
