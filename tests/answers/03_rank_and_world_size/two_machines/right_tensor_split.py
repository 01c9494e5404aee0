import os
from pathlib import Path

import torch


def my_part(n, folder):
    rank, local_rank, size = (int(os.environ[k]) for k in ("RANK", "LOCAL_RANK", "WORLD_SIZE"))
    mine = torch.arange(n).tensor_split(size)[rank]
    if not rank:
        Path(folder, "ranks.txt").write_text(f"{size}\n")
    return [f"cuda:{local_rank}", mine.tolist()]
