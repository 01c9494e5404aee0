# diagnosis: padded
import os

from torch.utils.data import DistributedSampler


def my_part(n, folder):
    sampler = DistributedSampler(range(n), shuffle=False)
    if int(os.environ["RANK"]) == 0:
        (folder / "ranks.txt").write_text(os.environ["WORLD_SIZE"])
    return f"cuda:{os.environ['LOCAL_RANK']}", list(sampler)
