"""All-reduce through rank 0: it receives every tensor, adds up, and sends the sum to everyone."""

import sys

import torch
import torch.distributed as dist

from ddp_lessons.worker import process_group, record


def all_reduce(x):
    """Replace x, on every rank, by the sum over all ranks."""
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        for other in range(1, n):
            parcel = torch.empty_like(x)
            dist.recv(parcel, src=other)
            x += parcel
        for other in range(1, n):
            dist.send(x, dst=other)
    else:
        dist.send(x, dst=0)
        dist.recv(x, src=0)


with process_group() as device:
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    x = torch.full((size,), 10 ** dist.get_rank(), device=device)
    record("start", x=x)
    all_reduce(x)
    record("end", x=x)
    dist.barrier()
