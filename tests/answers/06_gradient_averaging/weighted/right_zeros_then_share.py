import torch
import torch.distributed as dist


def average_gradients(model, count):
    total = torch.tensor(count)
    dist.all_reduce(total)
    for parameter in model.parameters():
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        parameter.grad *= count / total
        dist.all_reduce(parameter.grad)
