# diagnosis: form
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def finding():
    return {"bug": "sum", "rank": 1, "step": 8}


def average_gradients(model):
    gradients = [parameter.grad for parameter in model.parameters()]
    flat = parameters_to_vector(gradients)
    parts = dist.get_world_size()
    dist.all_reduce(flat)
    vector_to_parameters(flat / parts, gradients)
