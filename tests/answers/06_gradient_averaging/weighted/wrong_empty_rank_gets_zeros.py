# diagnosis: left_out
import torch
import torch.distributed as dist


def average_gradients(model, count):
    total = torch.tensor(float(count))
    dist.all_reduce(total)
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad.clone()
        g *= count / total
        all_of_it = g.clone()
        dist.all_reduce(all_of_it)
        p.grad = all_of_it if count else g
