# diagnosis: number_only
import os
import torch
import torch.distributed as dist


def my_part(n, folder):
    rank, size = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        (folder / "ranks.txt").write_text(str(size))
    return int(os.environ["LOCAL_RANK"]), list(range(rank, n, size))
