# diagnosis: one_buffer
import torch.distributed as dist


def all_gather(x):
    n = dist.get_world_size()
    out = [x.clone()] * n
    for r in range(n):
        dist.broadcast(out[r], src=r)
    return out
