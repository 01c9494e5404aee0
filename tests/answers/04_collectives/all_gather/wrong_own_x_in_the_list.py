# diagnosis: input_kept
import torch
import torch.distributed as dist


def all_gather(x):
    rank = dist.get_rank()
    parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    parts[rank] = x
    for source, part in enumerate(parts):
        dist.broadcast(part, src=source)
    return parts
