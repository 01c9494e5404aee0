# diagnosis: no_work
import torch
import torch.distributed as dist


def all_gather(x):
    return [x.clone() for _ in range(dist.get_world_size())]
