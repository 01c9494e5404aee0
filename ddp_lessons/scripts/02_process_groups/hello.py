import torch
import torch.distributed as dist

from ddp_lessons.worker import process_group, record

with process_group() as device:
    rank = dist.get_rank()
    x = torch.tensor([rank + 1.0], device=device)
    dist.all_reduce(x)
    record("hello", rank=rank, sum=x.item())
    print(f"hello from rank {rank} of {dist.get_world_size()}")
