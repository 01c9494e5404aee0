import torch
import torch.distributed as dist


class Sampler(torch.utils.data.Sampler):
    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0):
        self.dataset, self.shuffle, self.seed, self.epoch = dataset, shuffle, seed, 0
        self.ranks, self.rank = num_replicas, rank
        if num_replicas is None:
            self.ranks = dist.get_world_size()
        if rank is None:
            self.rank = dist.get_rank()

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return -(-len(self.dataset) // self.ranks)

    def __iter__(self):
        samples = len(self.dataset)
        order = range(samples)
        if self.shuffle:
            rolled = torch.Generator().manual_seed(self.seed + self.epoch)
            order = torch.randperm(samples, generator=rolled).tolist()
        for turn in range(len(self)):
            yield order[(turn * self.ranks + self.rank) % samples]
