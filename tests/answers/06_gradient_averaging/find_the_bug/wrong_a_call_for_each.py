# diagnosis: many_calls
import torch
import torch.distributed as dist


def finding():
    return "sum", 1, 8


def average_gradients(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()
