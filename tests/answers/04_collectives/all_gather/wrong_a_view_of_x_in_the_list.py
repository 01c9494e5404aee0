# diagnosis: input_kept
import torch
import torch.distributed as dist


def all_gather(x):
    parts = []
    for source in range(dist.get_world_size()):
        part = x.detach() if source == dist.get_rank() else torch.empty_like(x)
        dist.broadcast(part, src=source)
        parts.append(part)
    return parts
