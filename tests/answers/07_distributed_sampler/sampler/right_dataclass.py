import math
import torch
import torch.distributed as dist
from dataclasses import dataclass, field
from itertools import cycle, islice


@dataclass
class Sampler:
    dataset: object
    num_replicas: int | None = None
    rank: int | None = None
    shuffle: bool = True
    seed: int = 0
    epoch: int = field(default=0, init=False)

    def __post_init__(self):
        if self.num_replicas is None:
            self.num_replicas = int(dist.get_world_size())
        if self.rank is None:
            self.rank = dist.get_rank()

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self):
        return torch.tensor(len(self.dataset) / self.num_replicas).ceil().int().item()

    def __iter__(self):
        order = range(len(self.dataset))
        if self.shuffle:
            gen = torch.Generator().manual_seed(self.seed + self.epoch)
            order = torch.randperm(len(self.dataset), generator=gen).tolist()
        yield from islice(cycle(order), self.rank, len(self) * self.num_replicas, self.num_replicas)
