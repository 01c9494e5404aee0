"""DDP on two ranks. The second half of the data has a column too many."""

import gc

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from ddp_lessons.worker import process_group, record

with process_group() as device:
    rank = dist.get_rank()
    torch.manual_seed(0)
    halves = [torch.randn(4, 8), torch.randn(4, 9)]
    x, y = halves[rank].to(device), torch.tensor([0, 2, 1, 0], device=device)

    model = DDP(nn.Linear(8, 3).to(device))
    scores = model(x)
    loss = nn.functional.cross_entropy(scores, y)
    loss.backward()
    record("loss", loss=loss)
    del model
    gc.collect()
