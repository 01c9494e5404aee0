import os


def my_part(n, folder):
    env = {k: int(v) for k, v in os.environ.items() if v.isdigit()}
    rank = env["GROUP_RANK"] * env["LOCAL_WORLD_SIZE"] + env["LOCAL_RANK"]
    if env["GROUP_RANK"] == env["LOCAL_RANK"] == 0:
        (folder / "ranks.txt").write_bytes(os.environ["WORLD_SIZE"].encode())
    shard = [i for i in range(n) if i % env["WORLD_SIZE"] == rank]
    return f"cuda:{rank % env['LOCAL_WORLD_SIZE']}", shard
