"""Every rank sends to the right first, and then receives from the left."""

import torch
import torch.distributed as dist

from ddp_lessons.worker import process_group, record

with process_group() as device:
    rank, n = dist.get_rank(), dist.get_world_size()
    x = torch.tensor([10**rank], device=device)
    parcel = torch.empty_like(x)

    dist.send(x, dst=(rank + 1) % n)
    dist.recv(parcel, src=(rank - 1) % n)
    record("got", parcel=parcel)
    dist.barrier()
