# diagnosis: fewer_ranks
import torch
import torch.distributed as dist


def finding():
    return "sum", 1, 8


def average_gradients(model):
    parameters = list(model.parameters())
    grads = [p.grad.flatten() for p in parameters]
    flat = torch.cat([*grads, torch.tensor([float(any(g.any() for g in grads))])])
    dist.all_reduce(flat)
    mean = flat[:-1] / flat[-1].clamp(min=1)
    for p, part in zip(parameters, mean.split([p.numel() for p in parameters])):
        p.grad = part.view_as(p)
