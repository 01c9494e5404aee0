"""All-reduce in two halves: the first by the ring, the second by dist.all_gather."""

import sys

import torch
import torch.distributed as dist

from ddp_lessons.worker import process_group, record


def reduce_scatter(x):
    """Add up chunk r of x on rank r, and return all chunks. The others hold half-made sums."""
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    chunks = x.tensor_split(n)  # views: who changes a chunk changes x
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
    return chunks


def all_reduce(x):
    """Replace x, on every rank, by the sum over all ranks."""
    chunks = reduce_scatter(x)
    mine = chunks[dist.get_rank()]
    longest = len(chunks[0])  # gloo's all_gather takes parts of one size
    parts = [x.new_empty(longest) for _ in chunks]
    dist.all_gather(parts, torch.nn.functional.pad(mine, (0, longest - len(mine))))
    for chunk, part in zip(chunks, parts, strict=True):
        chunk.copy_(part[: len(chunk)])


with process_group() as device:
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    x = torch.full((size,), 10 ** dist.get_rank(), device=device)
    by_torch = x.clone()
    dist.all_reduce(by_torch)
    all_reduce(x)
    sizes = [len(chunk) for chunk in x.tensor_split(dist.get_world_size())]
    record("end", x=x, equal=torch.equal(x, by_torch), chunks=sizes)
