"""A stream of 6 items on every rank, read by 2 loader workers each. How often does it come?"""

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from ddp_lessons.worker import process_group, record


class Naive(IterableDataset):
    def __iter__(self):
        return iter(range(6))


class Split(IterableDataset):
    def __init__(self, rank, world_size):
        self.rank, self.world_size = rank, world_size

    def __iter__(self):
        worker = get_worker_info()
        reader = self.rank * worker.num_workers + worker.id
        return iter(range(reader, 6, self.world_size * worker.num_workers))


def read(data):
    """How many items all ranks read together."""
    # fork: other ways of starting would import this script anew in each loader worker
    loader = DataLoader(data, num_workers=2, multiprocessing_context="fork")
    count = torch.tensor(len(list(loader)), device=device)
    dist.all_reduce(count)
    return count.item()


with process_group() as device:
    record("naive", naive_all_ranks=read(Naive()))
    record("split", split_all_ranks=read(Split(dist.get_rank(), dist.get_world_size())))
