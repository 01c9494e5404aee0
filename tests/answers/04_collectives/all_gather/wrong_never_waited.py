# diagnosis: no_wait
import torch
import torch.distributed as dist


def all_gather(x):
    parts = [x.clone() for _ in range(dist.get_world_size())]
    for source, part in enumerate(parts):
        dist.broadcast(part, src=source, async_op=True)
    return parts
