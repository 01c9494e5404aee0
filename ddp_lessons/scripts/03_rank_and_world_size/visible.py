"""Which GPU is cuda:LOCAL_RANK when CUDA_VISIBLE_DEVICES names two of them?"""

import os

from ddp_lessons.worker import record

local_rank = int(os.environ["LOCAL_RANK"])
gpus = os.environ["CUDA_VISIBLE_DEVICES"].split(",")

record("my GPU", in_torch=f"cuda:{local_rank}", number=int(gpus[local_rank]))
