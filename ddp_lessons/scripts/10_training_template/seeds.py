"""First weights, shard and dropout of each rank, from one seed, the rank's, or as in train.py."""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import dropout
from torch.utils.data import DistributedSampler

from ddp_lessons.worker import process_group, record

with process_group():
    rank = dist.get_rank()
    equal, own = {"one": (0, 0), "rank": (rank, rank), "both": (0, 1 + rank)}[sys.argv[1]]

    torch.manual_seed(equal)
    weights = nn.Linear(3, 1).weight
    shard = list(DistributedSampler(range(8), seed=equal))
    torch.manual_seed(own)
    kept = dropout(torch.ones(8), 0.5) > 0
    record(sys.argv[1], weights=weights, shard=shard, dropout=kept.int())
    dist.barrier()
