# diagnosis: own_count
import torch
import torch.distributed as dist


def average_gradients(model, count):
    total = torch.tensor(float(count))
    dist.all_reduce(total)
    weight = 1 / (total.item() / count)
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad * weight
        dist.all_reduce(g)
        p.grad = g
