# diagnosis: torchs_own
from torch.utils.data import DistributedSampler


class Sampler(DistributedSampler):
    pass
