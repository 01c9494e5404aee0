"""10 test samples, of which a model gets 1 and 2 wrong. What do the ranks find together?"""

import torch
import torch.distributed as dist
from torch.utils.data import DistributedSampler

from ddp_lessons.worker import process_group, record

right = torch.tensor([1, 0, 0, 1, 1, 1, 1, 1, 1, 1])

with process_group() as device:
    shard = list(DistributedSampler(right, shuffle=False))
    counts = torch.tensor([right[shard].sum(), len(shard)], device=device)
    dist.all_reduce(counts)
    good, evaluated = counts.tolist()
    record("test", samples=len(right), shard=shard, evaluated=evaluated, accuracy=good / evaluated)
