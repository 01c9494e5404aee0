# diagnosis: mean_of_means
import torch
import torch.distributed as dist


def average_gradients(model, count):
    weight = torch.tensor(float(count))
    dist.broadcast(weight, src=0)
    total = weight.clone()
    dist.all_reduce(total)
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad * weight
        dist.all_reduce(g)
        p.grad = g / total
