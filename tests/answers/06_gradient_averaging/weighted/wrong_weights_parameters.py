# diagnosis: parameters_changed
import torch
import torch.distributed as dist


def average_gradients(model, count):
    total = torch.tensor(float(count))
    dist.all_reduce(total)
    for p in model.parameters():
        p.data *= count
        dist.all_reduce(p.data)
        p.data /= total / dist.get_world_size()
