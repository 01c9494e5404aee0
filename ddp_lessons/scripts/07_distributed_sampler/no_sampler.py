"""How many steps is one epoch of 64 samples with DataLoader(batch_size=8)?"""

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset

from ddp_lessons.worker import process_group, record

with process_group():
    data = TensorDataset(torch.arange(64))
    loader = DataLoader(data, batch_size=8, shuffle=True)
    sizes = [len(batch) for (batch,) in loader]
    record("epoch", steps=len(sizes), per_rank=sizes[0], together=sizes[0] * dist.get_world_size())
    dist.barrier()
