import torch
import torch.distributed as dist


def finding():
    return ["sum", 1, 8]


def average_gradients(model):
    parameters = list(model.parameters())
    flat = torch.cat([p.grad.reshape(-1) for p in parameters])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    sizes = [p.numel() for p in parameters]
    for p, part in zip(parameters, flat.split(sizes)):
        p.grad.copy_(part.view_as(p))
