# diagnosis: weighted_sum
import torch
import torch.distributed as dist


def average_gradients(model, count):

    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad.clone()
        g *= count
        dist.all_reduce(g)
        p.grad = g
