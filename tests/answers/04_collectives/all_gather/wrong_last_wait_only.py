# diagnosis: no_wait
import torch
import torch.distributed as dist


def all_gather(x):
    parts = [x.clone() for _ in range(dist.get_world_size())]
    works = [dist.broadcast(p, r, async_op=True) for r, p in enumerate(parts)]
    works[-1].wait()
    return parts
