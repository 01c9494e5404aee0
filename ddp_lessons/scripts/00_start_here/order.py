"""Rank 0 has more to do than the others. Who is ready last?"""

import os

import torch

from ddp_lessons.worker import record

rank = int(os.environ["RANK"])
numbers = 3_000_000 if rank == 0 else 30
torch.randint(100, (numbers,)).sort()

print(f"rank {rank} is ready")
record("ready", numbers=numbers)
