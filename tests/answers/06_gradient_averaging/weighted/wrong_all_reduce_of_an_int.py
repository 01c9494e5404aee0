# diagnosis: no_tensor
import torch.distributed as dist


def average_gradients(model, count):
    total = dist.all_reduce(count)
    for p in model.parameters():
        p.grad *= count / total
        dist.all_reduce(p.grad)
