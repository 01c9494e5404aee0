# diagnosis: old_counts
import torch
import torch.distributed as dist


cache = {}


def average_gradients(model, count):
    if "total" not in cache:
        cache["total"] = torch.tensor(float(count))
        dist.all_reduce(cache["total"])
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad * count
        dist.all_reduce(g)
        p.grad = g / cache["total"]
