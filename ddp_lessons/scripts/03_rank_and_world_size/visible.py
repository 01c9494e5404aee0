"""Which card is cuda:LOCAL_RANK when CUDA_VISIBLE_DEVICES names two of them?"""

import os

from ddp_lessons.worker import record

local_rank = int(os.environ["LOCAL_RANK"])
cards = os.environ["CUDA_VISIBLE_DEVICES"].split(",")

record("card", device=f"cuda:{local_rank}", card=int(cards[local_rank]))
