import torch
import torch.distributed as dist


def finding():
    return "sum", 1, 8


@torch.no_grad()
def average_gradients(model):
    total = torch.zeros(sum(p.numel() for p in model.parameters()))
    start = 0
    for p in model.parameters():
        total[start : start + p.numel()] = p.grad.flatten()
        start += p.numel()
    dist.all_reduce(total, async_op=True).wait()
    for p in reversed(list(model.parameters())):
        start -= p.numel()
        p.grad = total[start : start + p.numel()].reshape(p.shape) / dist.get_world_size()
