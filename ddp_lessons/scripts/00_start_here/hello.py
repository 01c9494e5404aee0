"""Every rank says who it is."""

import os

from ddp_lessons.worker import record

rank = int(os.environ["RANK"])
world_size = int(os.environ["WORLD_SIZE"])

print(f"I am rank {rank} of {world_size}")
record("hello", square=rank * rank)
