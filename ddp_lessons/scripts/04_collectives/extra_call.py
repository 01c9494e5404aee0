"""Three steps, a sum in each. Rank 1 makes one more call, for its log."""

import torch
import torch.distributed as dist

from ddp_lessons.worker import process_group, record

with process_group() as device:
    rank = dist.get_rank()
    calls = 0
    for step in (1, 2, 3):
        calls += 1
        x = torch.tensor([step * 10**rank], device=device)
        record(f"before call {calls}", x=x)
        dist.all_reduce(x)
        record(f"after call {calls}", x=x)

        if rank == 1 and step == 1:
            calls += 1
            log = torch.tensor([90], device=device)
            record(f"before call {calls}", log=log)
            dist.all_reduce(log)
            record(f"after call {calls}", log=log)
