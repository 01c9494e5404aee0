"""What torchrun tells each rank about its place."""

import os

import torch.distributed as dist

from ddp_lessons.worker import process_group, record

with process_group() as device:
    record(
        "place",
        RANK=int(os.environ["RANK"]),
        LOCAL_RANK=int(os.environ["LOCAL_RANK"]),
        WORLD_SIZE=int(os.environ["WORLD_SIZE"]),
        LOCAL_WORLD_SIZE=int(os.environ["LOCAL_WORLD_SIZE"]),
    )
    dist.barrier()
