# diagnosis: not_averaged
import torch
import torch.distributed as dist


def average_gradients(model, count):

    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad.clone()
        dist.all_reduce(p.data)
        p.data /= dist.get_world_size()
