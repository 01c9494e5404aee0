"""Two ranks that share GPU 0 and all-reduce four numbers over NCCL.

NCCL refuses a second rank on a GPU unless it is told that this is meant; how to tell it changed
with version 2.30. The settings are for a try-out: correct at best, never fast.
"""

import os
import signal
import sys
from datetime import timedelta

import torch
import torch.distributed as dist


def settings(version: tuple[int, ...], rank: int) -> dict[str, str]:
    """The environment that lets NCCL of this version put rank `rank` on a GPU that is taken."""
    if version >= (2, 30):
        return {
            "NCCL_MULTI_RANK_GPU_ENABLE": "1",
            "NCCL_NVLS_ENABLE": "0",
            "NCCL_MAX_CTAS": "2",
        }
    return {
        "NCCL_HOSTID": f"rank-{rank}",  # as if each rank were on a machine of its own
        "NCCL_SOCKET_IFNAME": "=lo",  # with its own "=": this very name, not a prefix
        "NCCL_NET": "Socket",
        "NCCL_NVLS_ENABLE": "0",
        "NCCL_MAX_CTAS": "2",
        "NCCL_ALGO": "Ring",
        "NCCL_PROTO": "Simple",
    }


def main(limit: int) -> None:
    # A rank that hangs in NCCL ends by itself, also if torchrun is killed.
    signal.alarm(limit)
    rank = int(os.environ["RANK"])
    device = torch.device("cuda", 0)
    torch.cuda.set_device(device)
    version = torch.cuda.nccl.version()
    os.environ.update(settings(version, rank))
    dist.init_process_group("nccl", device_id=device, timeout=timedelta(seconds=limit))
    x = torch.full((4,), rank + 1.0, device=device)
    dist.all_reduce(x)
    print(f"rank {rank} of NCCL {'.'.join(map(str, version))}: sum={x.tolist()}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]))
