# diagnosis: old_counts
import torch
import torch.distributed as dist


share = None


def average_gradients(model, count):
    global share
    if share is None:
        total = torch.tensor(float(count))
        dist.all_reduce(total)
        share = count / total
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad * share
        dist.all_reduce(g)
        p.grad = g
