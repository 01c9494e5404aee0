"""The shards of several epochs, with or without set_epoch."""

import sys

import torch.distributed as dist
from torch.utils.data import DistributedSampler

from ddp_lessons.worker import process_group, record

samples, epochs = int(sys.argv[1]), int(sys.argv[2])

with process_group():
    sampler = DistributedSampler(range(samples))  # it shuffles
    for epoch in range(epochs):
        if "set_epoch" in sys.argv:
            sampler.set_epoch(epoch)
        record("epoch", samples=samples, shard=list(sampler))
    dist.barrier()
