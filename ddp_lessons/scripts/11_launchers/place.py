"""What a launcher tells each rank: by the environment, and by arguments."""

import os
import sys

import torch.distributed as dist

from ddp_lessons.worker import process_group, record

NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT")

with process_group():
    record("environment", **{name: os.environ.get(name) for name in NAMES})
    record("more", gpus=os.environ.get("CUDA_VISIBLE_DEVICES") or None, arguments=sys.argv[1:])
    dist.barrier()
