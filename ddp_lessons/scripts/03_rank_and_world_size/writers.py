"""Who saves the file? Two rules, counted over all ranks."""

import os

import torch
import torch.distributed as dist

from ddp_lessons.worker import process_group, record

with process_group() as device:
    by_rank = dist.get_rank() == 0
    by_local_rank = int(os.environ["LOCAL_RANK"]) == 0
    writers = torch.tensor([by_rank, by_local_rank], dtype=torch.int64, device=device)
    dist.all_reduce(writers)
    record("writers", if_rank_is_0=writers[0], if_local_rank_is_0=writers[1])
