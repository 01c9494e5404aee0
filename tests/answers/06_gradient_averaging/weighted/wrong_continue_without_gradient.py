# diagnosis: empty_skips
import torch
import torch.distributed as dist


def average_gradients(model, count):
    total = torch.tensor(count)
    dist.all_reduce(total)
    for p in model.parameters():
        if p.grad is None:
            continue
        p.grad *= count / total
        dist.all_reduce(p.grad)
