# diagnosis: always_three
import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def finding():
    return ("sum", 1, 8)


def average_gradients(model):
    gradients = [p.grad for p in model.parameters()]
    flat = parameters_to_vector(gradients)
    dist.all_reduce(flat)
    flat /= 3
    vector_to_parameters(flat, gradients)
