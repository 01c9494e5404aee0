# diagnosis: sent_something_else
import torch
import torch.distributed as dist


def all_gather(x):
    parts = [torch.zeros_like(x) for _ in range(dist.get_world_size())]
    for source, part in enumerate(parts):
        dist.broadcast(part, src=source)
    return parts
