# diagnosis: no_writer
import os


def my_part(n, folder):
    rank, size = os.environ["RANK"], os.environ["WORLD_SIZE"]
    if rank == 0:
        (folder / "ranks.txt").write_text(size)
    return f"cuda:{os.environ['LOCAL_RANK']}", list(range(int(rank), n, int(size)))
