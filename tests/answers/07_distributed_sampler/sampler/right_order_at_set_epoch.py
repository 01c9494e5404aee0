import numpy as np
import torch
import torch.distributed as dist


class Sampler:
    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0):
        self.dataset, self.shuffle, self.seed = dataset, shuffle, seed
        self.num_replicas, self.rank = num_replicas, rank
        self.set_epoch(0)

    @property
    def ranks(self):
        return dist.get_world_size() if self.num_replicas is None else self.num_replicas

    @property
    def place(self):
        return dist.get_rank() if self.rank is None else self.rank

    def set_epoch(self, epoch):
        n = len(self.dataset)
        order = torch.arange(n)
        if self.shuffle:
            g = torch.Generator()
            g.manual_seed(self.seed + epoch)
            order = torch.randperm(n, generator=g)
        size = len(self)
        self.order = order.repeat(self.ranks)[: size * self.ranks].reshape(size, self.ranks)

    def __len__(self):
        return np.ceil(len(self.dataset) / self.ranks).astype(int)

    def __iter__(self):
        return map(int, self.order[:, self.place])
