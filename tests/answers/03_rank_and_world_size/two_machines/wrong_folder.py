# diagnosis: no_writer
import os
import torch
import torch.distributed as dist


def my_part(n, folder):
    rank, size = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        with open(folder.parent / "ranks.txt", "w") as file:
            file.write(str(size))
    return f"cuda:{os.environ['LOCAL_RANK']}", list(range(rank, n, size))
