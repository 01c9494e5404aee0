"""all_reduce in one call, and in two halves: reduce_scatter, then all_gather."""

import torch
import torch.distributed as dist

from ddp_lessons.worker import process_group, record

with process_group() as device:
    rank, n = dist.get_rank(), dist.get_world_size()
    x = torch.arange(1, n + 1, device=device) * 10**rank

    whole = x.clone()
    record("before all_reduce", whole=whole)
    dist.all_reduce(whole)
    record("after all_reduce", whole=whole)

    part = torch.zeros_like(x[:1])
    record("before reduce_scatter", x=x, part=part)
    dist.reduce_scatter(part, list(x.chunk(n)))
    record("after reduce_scatter", x=x, part=part)

    parts = [torch.zeros_like(part) for _ in range(n)]
    record("before all_gather", part=part, parts=parts)
    dist.all_gather(parts, part)
    record("after all_gather", part=part, parts=parts)

    record("compared", equal=torch.equal(torch.cat(parts), whole))
