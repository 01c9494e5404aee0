# diagnosis: pads_before_shuffling
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

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return math.ceil(self.size / self.n)

    def __iter__(self):
        total = len(self) * self.n
        samples = [i % self.size for i in range(total)]
        if self.shuffle:
            generator = torch.Generator().manual_seed(self.seed + self.epoch)
            samples = [samples[i] for i in torch.randperm(total, generator=generator).tolist()]
        return iter(samples[self.rank :: self.n])
