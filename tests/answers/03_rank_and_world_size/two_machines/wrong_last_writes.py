# diagnosis: other_writer
import os


def my_part(n, folder):
    rank = int(os.environ["RANK"])
    world_size = int(os.environ["WORLD_SIZE"])
    device = f"cuda:{os.environ['LOCAL_RANK']}"
    shard = list(range(rank, n, world_size))
    if rank == world_size - 1:
        (folder / "ranks.txt").write_text(str(world_size))
    return device, shard
