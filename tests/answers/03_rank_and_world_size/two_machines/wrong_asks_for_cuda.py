# diagnosis: no_gpu_here
import os

import torch


def my_part(n, folder):
    rank = int(os.environ["RANK"])
    world_size = int(os.environ["WORLD_SIZE"])
    device = "cuda:" + os.environ["LOCAL_RANK"] if torch.cuda.is_available() else "cpu"
    shard = list(range(rank, n, world_size))
    if rank == 0:
        (folder / "ranks.txt").write_text(str(world_size))
    return device, shard
