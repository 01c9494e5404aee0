import torch
import torch.distributed as dist


def average_gradients(model, count):
    total = torch.tensor([count], dtype=torch.int64)
    dist.reduce(total, dst=0)
    for p in model.parameters():
        total_gradient = torch.zeros_like(p.data)
        if p.grad is not None:
            total_gradient.add_(p.grad, alpha=count)
        dist.reduce(total_gradient, dst=0)
        if dist.get_rank() == 0:
            total_gradient /= total.item()
        dist.broadcast(total_gradient, src=0)
        p.grad = total_gradient
