# diagnosis: sent_what_came
import torch
import torch.distributed as dist


def all_gather(x):
    buffer = x.clone()
    parts = []
    for source in range(dist.get_world_size()):
        dist.broadcast(buffer, src=source)
        parts.append(buffer.clone())
    return parts
