"""A step under no_sync, then one without it. What does the second backward average?"""

import gc

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from ddp_lessons.worker import process_group, record

with process_group() as device:
    x = torch.tensor([[dist.get_rank() + 1.0]], device=device)  # local gradients 1 and 2
    inner = nn.Linear(1, 1, bias=False).to(device)
    model = DDP(inner)
    with model.no_sync():
        model(x).mean().backward()
    record("under no_sync", local=inner.weight.grad.item())
    model(x).mean().backward()  # .grad has not been emptied
    record("after it", averaged=inner.weight.grad.item())
    del model
    gc.collect()
    dist.barrier()
