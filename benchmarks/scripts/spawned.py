"""The same all-reduce as all_reduce.py, started by torch.multiprocessing.spawn."""

import os
import socket
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def main(rank: int, world_size: int, port: int) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    x = torch.arange(4) + dist.get_rank()
    dist.all_reduce(x)
    print(f"sum={x.tolist()}", flush=True)
    dist.destroy_process_group()


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


if __name__ == "__main__":
    size = int(sys.argv[1])
    mp.spawn(main, args=(size, free_port()), nprocs=size)
