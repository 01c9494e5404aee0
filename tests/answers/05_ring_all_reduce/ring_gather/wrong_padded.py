# diagnosis: padded
import torch
import torch.distributed as dist


def ring_gather(chunks, after_step):
    rank, n = dist.get_rank(), dist.get_world_size()
    longest = max(len(chunk) for chunk in chunks)
    for step in range(1, n):
        goes, comes = chunks[(rank - step + 1) % n], chunks[(rank - step) % n]
        parcel = comes.new_empty(longest)
        work = dist.isend(torch.nn.functional.pad(goes, (0, longest - len(goes))), (rank + 1) % n)
        dist.recv(parcel, (rank - 1) % n)
        work.wait()
        comes.copy_(parcel[: len(comes)])
        after_step()
