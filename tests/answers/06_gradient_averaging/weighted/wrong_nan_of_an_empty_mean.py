# diagnosis: not_finite
import torch
import torch.distributed as dist


def average_gradients(model, count):
    total = torch.tensor(float(count))
    dist.all_reduce(total)
    for p in model.parameters():
        mine = p.grad * count if count else torch.zeros(0, *p.shape).mean(0)
        dist.all_reduce(mine)
        p.grad = mine / total
