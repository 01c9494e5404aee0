"""Two ranks wrap two models."""

import gc

import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from ddp_lessons.worker import process_group, record

with process_group() as device:
    classes = 2 + dist.get_rank()
    model = nn.Linear(4, classes).to(device)
    record("before wrapping", outputs=classes)
    model = DDP(model, device_ids=[device.index] if device.type == "cuda" else None)
    record("wrapped", outputs=classes)
    del model
    gc.collect()
    dist.barrier()
