# diagnosis: returned
import torch
import torch.distributed as dist


def average_gradients(model, count):
    total = torch.tensor(float(count))
    dist.all_reduce(total)
    out = []
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad * count
        dist.all_reduce(g)
        out.append(g / total)
    return out
