# diagnosis: mean_of_means
import torch
import torch.distributed as dist


def average_gradients(model, count):
    n = torch.tensor(float(count > 0))
    dist.all_reduce(n)
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad.clone()
        dist.all_reduce(g)
        p.grad = g / n
