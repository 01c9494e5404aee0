"""Each rank's shard of 10,000 samples: by hand, and from DistributedSampler."""

import torch
import torch.distributed as dist
from torch.utils.data import DistributedSampler, TensorDataset

from ddp_lessons.worker import process_group, record

with process_group():
    rank, world_size = dist.get_rank(), dist.get_world_size()
    data = TensorDataset(torch.arange(10_000))  # all of it, on every rank

    mine = list(range(rank, len(data), world_size))
    sampler = DistributedSampler(data, shuffle=False)

    equal = mine == list(sampler)
    record("shard", data=len(data), shard=len(mine), first=mine[:3], equal=equal)
    dist.barrier()
