# diagnosis: empty_left_out
import torch
import torch.distributed as dist


def ring_gather(chunks, after_step):
    rank, n = dist.get_rank(), dist.get_world_size()
    for step in range(1, n):
        goes, comes = chunks[(rank - step + 1) % n], chunks[(rank - step) % n]
        works = [dist.irecv(comes, (rank - 1) % n)]
        if len(goes) > 0:
            works.append(dist.isend(goes, (rank + 1) % n))
        for work in works:
            work.wait()
        after_step()
