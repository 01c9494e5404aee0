# diagnosis: zeros_kept
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def finding():
    return "sum", 1, 8


def average_gradients(model):
    gradients = [parameter.grad for parameter in model.parameters()]
    flat = parameters_to_vector(gradients)
    mine = flat.clone()
    dist.all_reduce(flat)
    flat = flat / dist.get_world_size() if mine.any() else mine
    vector_to_parameters(flat, gradients)
