"""3 samples, and more ranks than that. One epoch without drop_last, one with it."""

import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

from ddp_lessons.worker import process_group, record

data = [10, 11, 12]

with process_group():
    padded = DataLoader(data, sampler=DistributedSampler(data, shuffle=False))
    record("padded", padded=[batch.item() for batch in padded])

    dropped = DataLoader(data, sampler=DistributedSampler(data, shuffle=False, drop_last=True))
    record("dropped", dropped=[batch.item() for batch in dropped])
    dist.barrier()
