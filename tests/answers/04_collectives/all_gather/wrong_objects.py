# diagnosis: other_call
import torch
import torch.distributed as dist


def all_gather(x):
    out = []
    for r in range(dist.get_world_size()):
        box = [x]
        dist.broadcast_object_list(box, src=r)
        out.append(box[0])
    return out
