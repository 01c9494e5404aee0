"""The first half of ring all-reduce: in the end, rank r has chunk r of the sum."""

import sys

import torch
import torch.distributed as dist

from ddp_lessons.worker import process_group, record


def reduce_scatter(x):
    """Add up chunk r of x on rank r, and return all chunks. The others hold half-made sums."""
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    chunks = x.tensor_split(n)  # views: who changes a chunk changes x
    record("start", chunks=chunks)
    for step in range(1, n):
        # 1. Which chunk goes, and which one comes?
        goes, comes = (rank - step) % n, (rank - step - 1) % n
        # 2. Send and receive at the same time.
        parcel = torch.empty_like(chunks[comes])
        send = dist.P2POp(dist.isend, chunks[goes], right)
        receive = dist.P2POp(dist.irecv, parcel, left)
        for work in dist.batch_isend_irecv([send, receive]):
            work.wait()
        # 3. Add.
        chunks[comes].add_(parcel)
        record("step", chunk=comes, chunks=chunks)
    return chunks


with process_group() as device:
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    x = torch.full((size,), 10 ** dist.get_rank(), device=device)
    chunks = reduce_scatter(x)
    record("end", mine=chunks[dist.get_rank()])
    dist.barrier()
