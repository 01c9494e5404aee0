# diagnosis: unmended
import torch
import torch.distributed as dist


def finding():
    return "sum", 1, 8


def average_gradients(model):
    parameters = list(model.parameters())
    flat = torch.cat([p.grad.flatten() for p in parameters])
    mine = flat.clone()
    dist.all_reduce(flat)
    if mine.abs().sum() > 0:
        flat /= dist.get_world_size()
    for p, part in zip(parameters, flat.split([p.numel() for p in parameters])):
        p.grad = part.view_as(p)
