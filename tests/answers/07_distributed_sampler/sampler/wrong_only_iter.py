# diagnosis: no_function
import torch.distributed as dist


class Sampler:
    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0):
        self.numbers = range(rank or dist.get_rank(), len(dataset), dist.get_world_size())

    def __iter__(self):
        return iter(self.numbers)
