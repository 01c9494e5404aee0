import math

import torch
import torch.distributed as dist


class Sampler:
    """Has torch's drop_last as well, and a place that it works out when it is asked."""

    def __init__(
        self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False
    ):
        self.dataset, self.place = dataset, (num_replicas, rank)
        self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
        self.epoch = 0

    @property
    def num_replicas(self):
        return dist.get_world_size() if self.place[0] is None else self.place[0]

    @property
    def rank(self):
        return dist.get_rank() if self.place[1] is None else self.place[1]

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        shard = len(self.dataset) / self.num_replicas
        return math.floor(shard) if self.drop_last else math.ceil(shard)

    def __iter__(self):
        order = list(range(len(self.dataset)))
        if self.shuffle:
            generator = torch.Generator().manual_seed(self.seed + self.epoch)
            order = torch.randperm(len(order), generator=generator).tolist()
        total = len(self) * self.num_replicas
        rounds = math.ceil(total / len(order))
        yield from (order * rounds)[self.rank : total : self.num_replicas]
