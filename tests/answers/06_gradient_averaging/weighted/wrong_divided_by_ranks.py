# diagnosis: mean_of_means
import torch
import torch.distributed as dist


def average_gradients(model, count):
    n = dist.get_world_size()
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad.clone()
        dist.all_reduce(g)
        p.grad = g / n
