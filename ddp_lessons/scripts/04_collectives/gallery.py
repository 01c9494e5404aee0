"""Four more ways to move tensors: scatter, gather, all_to_all, and isend with irecv."""

import torch
import torch.distributed as dist

from ddp_lessons.worker import process_group, record

with process_group() as device:
    rank, n = dist.get_rank(), dist.get_world_size()
    x = torch.arange(1, n + 1, device=device) * 10**rank
    chunks = list(x.chunk(n))

    part = torch.zeros_like(x[:1])
    record("before scatter", x=x, part=part)
    dist.scatter(part, chunks if rank == 0 else None, src=0)
    record("after scatter", x=x, part=part)

    parts = [torch.zeros_like(x) for _ in range(n)] if rank == 0 else None
    record("before gather", x=x, parts=parts)
    dist.gather(x, parts, dst=0)
    record("after gather", x=x, parts=parts)

    got = torch.zeros_like(x)
    record("before all_to_all", x=x, got=got)
    dist.all_to_all_single(got, x)
    record("after all_to_all", x=x, got=got)

    got = torch.zeros_like(x)
    there, back = (rank + 1) % n, (rank - 1) % n
    record("before isend and irecv", x=x, got=got)
    both = [dist.P2POp(dist.isend, x, there), dist.P2POp(dist.irecv, got, back)]
    for work in dist.batch_isend_irecv(both):
        work.wait()
    record("after isend and irecv", x=x, got=got)
    dist.barrier()
