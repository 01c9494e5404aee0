# diagnosis: share_only
import torch
import torch.distributed as dist


def average_gradients(model, count):
    total = torch.tensor(float(count))
    dist.all_reduce(total)
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad.clone()
        p.grad = g * count / total
