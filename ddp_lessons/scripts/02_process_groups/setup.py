"""Set up, work, clean up: the frame of every script from here on."""

import os

import torch
import torch.distributed as dist

from ddp_lessons.worker import record

# 1. Which device is mine?
local_rank = int(os.environ["LOCAL_RANK"])
if torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"]):
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    backend = "nccl"
else:
    device = torch.device("cpu")
    backend = "gloo"

# 2. Meet the other ranks.
dist.init_process_group(backend, device_id=device if backend == "nccl" else None)
try:
    # 3. Work together.
    x = torch.tensor([dist.get_rank() + 1], device=device)
    dist.all_reduce(x)
    record("work", sum=x.item())
finally:
    # 4. Leave, whatever happened.
    dist.destroy_process_group()
