"""all_gather_object takes any Python object. Each is pickled first."""

import pickle

import torch
import torch.distributed as dist

from ddp_lessons.worker import process_group, record

with process_group():
    numbers = [float(i) for i in range(3 if dist.get_rank() == 0 else 300)]
    found = [None] * dist.get_world_size()
    dist.all_gather_object(found, numbers)

    record(
        "gathered",
        lengths=[len(item) for item in found],
        as_tensor=torch.tensor(numbers, dtype=torch.float64).nbytes,
        as_object=len(pickle.dumps(numbers)),
    )
