# diagnosis: empty_skips
import torch
import torch.distributed as dist


def average_gradients(model, count):
    if count == 0:
        return
    total = torch.tensor(float(count))
    dist.all_reduce(total)
    for p in model.parameters():
        p.grad *= count / total
        dist.all_reduce(p.grad)
