import os

import numpy as np


def my_part(n, folder):
    rank, size = os.environ["RANK"], os.environ["WORLD_SIZE"]
    if rank == "0":
        os.chdir(os.getcwd())
        file = open(os.path.join(folder, "ranks.txt"), "w")
        file.write(size)
        file.close()
    shard = np.array_split(np.arange(n), int(size))[int(rank)]
    return "cuda:" + os.environ["LOCAL_RANK"], shard
