# diagnosis: goes_on
import math

import torch
import torch.distributed as dist


class Sampler:
    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0):
        self.size = len(dataset)
        self.n = dist.get_world_size() if num_replicas is None else num_replicas
        self.rank = dist.get_rank() if rank is None else rank
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0
        self.generator = torch.Generator().manual_seed(seed)

    def set_epoch(self, epoch):
        self.epoch = epoch
        self.generator.manual_seed(self.seed + epoch)

    def __len__(self):
        return math.ceil(self.size / self.n)

    def shard(self):
        order = list(range(self.size))
        if self.shuffle:
            order = torch.randperm(self.size, generator=self.generator).tolist()
        order = (order * self.n)[: len(self) * self.n]
        return order[self.rank :: self.n]

    def __iter__(self):
        return iter(self.shard())
