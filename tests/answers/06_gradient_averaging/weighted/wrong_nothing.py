# diagnosis: not_averaged
import torch
import torch.distributed as dist


def average_gradients(model, count):
    pass
