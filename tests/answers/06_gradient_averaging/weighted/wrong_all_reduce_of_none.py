# diagnosis: none_gradient
import torch
import torch.distributed as dist


def average_gradients(model, count):
    total = torch.tensor(float(count))
    dist.all_reduce(total)
    for p in model.parameters():
        dist.all_reduce(p.grad if count == 0 else p.grad.mul_(count))
        p.grad /= total
