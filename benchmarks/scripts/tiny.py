"""1,000 all-reduces of one number; rank 0 prints how many milliseconds they took.

The number is the least of several rounds: what the calls cost when nothing else interferes.
"""

import sys
import time

import torch
import torch.distributed as dist

CALLS = 1000


def one_round(x: torch.Tensor) -> float:
    """Seconds of 1,000 calls."""
    dist.barrier()
    began = time.perf_counter()
    for _ in range(CALLS):
        dist.all_reduce(x)
    return time.perf_counter() - began


dist.init_process_group("gloo")
seconds = [one_round(torch.zeros(1)) for _ in range(int(sys.argv[1]))]
if dist.get_rank() == 0:
    print(f"milliseconds={1000 * min(seconds):.3f}", flush=True)
dist.barrier()
dist.destroy_process_group()
