# diagnosis: always_two
import math

import torch
import torch.distributed as dist


class Sampler:
    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0):
        self.size = len(dataset)
        self.n = 2
        self.rank = dist.get_rank() if rank is None else rank
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return math.ceil(self.size / self.n)

    def order(self):
        if not self.shuffle:
            return list(range(self.size))
        generator = torch.Generator()
        generator.manual_seed(self.seed + self.epoch)
        return torch.randperm(self.size, generator=generator).tolist()

    def __iter__(self):
        order = self.order()
        order = (order * self.n)[: math.ceil(self.size / self.n) * self.n]
        return iter(order[self.rank :: self.n])
