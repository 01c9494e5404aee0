# diagnosis: uneven
import os


def my_part(n, folder):
    rank = int(os.environ["RANK"])
    world_size = int(os.environ["WORLD_SIZE"])
    device = f"cuda:{os.environ['LOCAL_RANK']}"
    per = n // world_size
    end = n if rank == world_size - 1 else (rank + 1) * per
    shard = list(range(rank * per, end))
    if rank == 0:
        (folder / "ranks.txt").write_text(str(world_size))
    return device, shard
