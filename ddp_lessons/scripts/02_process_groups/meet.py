"""Ranks meet in init_process_group. The last one is late on purpose."""

import os
import time

import torch
import torch.distributed as dist

from ddp_lessons.worker import record

rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
cuda = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else None

if rank == world_size - 1:
    time.sleep(1)

if cuda:
    torch.cuda.set_device(device)
record("called")
dist.init_process_group("nccl" if cuda else "gloo", device_id=device)
record("released", size=dist.get_world_size())

dist.barrier()
dist.destroy_process_group()
