import torch
import torch.distributed as dist


def ring_gather(chunks, after_step):
    n = len(chunks)
    rank = dist.get_rank()
    k = rank
    while (k - 1) % n != rank:
        works = []
        if chunks[k].numel():
            works.append(dist.isend(chunks[k], (rank + 1) % n, tag=k))
        k = (k - 1) % n
        if chunks[k].numel():
            works.append(dist.irecv(chunks[k], (rank - 1) % n, tag=k))
        while works:
            works.pop().wait()
        after_step()
