# diagnosis: divided_again
import torch
import torch.distributed as dist


def average_gradients(model, count):
    total = torch.tensor(float(count))
    dist.all_reduce(total)
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad.clone()
        g *= count / total
        dist.all_reduce(g)
        p.grad = g / dist.get_world_size()
