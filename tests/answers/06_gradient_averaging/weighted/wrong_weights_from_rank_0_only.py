# diagnosis: count_of_one
import torch
import torch.distributed as dist


def average_gradients(model, count):
    total = torch.tensor(float(count))
    dist.broadcast(total, src=0)
    total *= dist.get_world_size()
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad * count
        dist.all_reduce(g)
        p.grad = g / total
