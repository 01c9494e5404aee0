# diagnosis: pads_unshuffled
import math
import torch
import torch.distributed as dist


class Sampler:
    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0):
        self.n = len(dataset)
        self.r = dist.get_world_size() if num_replicas is None else num_replicas
        self.rank = dist.get_rank() if rank is None else rank
        self.shuffle, self.seed, self.epoch = shuffle, seed, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return math.ceil(self.n / self.r)

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        order = (
            torch.randperm(self.n, generator=g).tolist() if self.shuffle else list(range(self.n))
        )
        i = 0
        while len(order) % self.r:
            order.append(i % self.n)
            i += 1
        return iter(order[self.rank :: self.r])
