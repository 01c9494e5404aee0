# diagnosis: sizes
import torch
import torch.distributed as dist


def ring_gather(chunks, after_step):
    rank, n = dist.get_rank(), dist.get_world_size()
    parcel = torch.empty_like(chunks[0])
    for step in range(1, n):
        work = dist.isend(chunks[(rank - step + 1) % n], (rank + 1) % n)
        dist.recv(parcel, (rank - 1) % n)
        work.wait()
        chunk = chunks[(rank - step) % n]
        chunk.copy_(parcel[: len(chunk)])
        after_step()
