import numpy as np
import torch
import torch.distributed as dist


class Sampler:
    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0):
        if num_replicas is None or rank is None:
            num_replicas, rank = dist.get_world_size(), dist.get_rank()
        self.dataset, self.replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.epoch = shuffle, seed, 0

    def set_epoch(self, epoch):
        self.epoch = int(epoch)

    def __len__(self):
        whole, rest = divmod(len(self.dataset), self.replicas)
        return whole + (rest > 0)

    def __iter__(self):
        order = np.arange(len(self.dataset))
        if self.shuffle:
            made = torch.Generator()
            made.manual_seed(self.seed + self.epoch)
            order = torch.randperm(len(self.dataset), generator=made).numpy()
        dealt = np.resize(order, len(self) * self.replicas)  # begins again where it ends
        return iter(dealt[self.rank :: self.replicas].tolist())
