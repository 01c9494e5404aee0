from itertools import cycle, islice

import torch
import torch.distributed as dist


def order_of(samples, number):
    """Leaves the process's own random numbers where they were."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(number)
        return torch.randperm(samples).tolist()


class Sampler:
    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0):
        self.samples = len(dataset)
        self.of = num_replicas if num_replicas is not None else dist.get_world_size()
        self.me = rank if rank is not None else dist.get_rank()
        self.seed = seed if shuffle else None
        self.set_epoch(0)

    def set_epoch(self, epoch):
        self.order = list(range(self.samples))
        if self.seed is not None:
            self.order = order_of(self.samples, self.seed + epoch)

    def __len__(self):
        return (self.samples + self.of - 1) // self.of

    def __iter__(self):
        return islice(cycle(self.order), self.me, len(self) * self.of, self.of)
