# diagnosis: local_shard
import os


def my_part(n, folder):
    rank = int(os.environ["RANK"])
    world_size = int(os.environ["WORLD_SIZE"])
    device = f"cuda:{os.environ['LOCAL_RANK']}"
    shard = list(range(int(os.environ["LOCAL_RANK"]), n, world_size))
    if rank == 0:
        (folder / "ranks.txt").write_text(str(world_size))
    return device, shard
