# diagnosis: without_own
import torch
import torch.distributed as dist


def all_gather(x):
    parts = []
    for source in range(dist.get_world_size()):
        if source == dist.get_rank():
            parts.append(x.clone())  # it is here already
            continue
        part = torch.empty_like(x)
        dist.broadcast(part, src=source)
        parts.append(part)
    return parts
