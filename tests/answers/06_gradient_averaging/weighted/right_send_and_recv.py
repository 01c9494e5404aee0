import torch
import torch.distributed as dist


def average_gradients(model, count):
    n, rank = dist.get_world_size(), dist.get_rank()
    flat = torch.zeros(1 + sum(p.numel() for p in model.parameters()), dtype=torch.float64)
    if count:
        flat[0] = count
        flat[1:] = count * torch.cat([p.grad.reshape(-1) for p in model.parameters()]).double()
    if rank:
        dist.send(flat, 0)
        dist.recv(flat, 0)
    else:
        other = torch.empty_like(flat)
        for r in range(1, n):
            dist.recv(other, r)
            flat += other
        for r in range(1, n):
            dist.send(flat, r)
    mean = (flat[1:] / flat[0]).float()
    for p, g in zip(model.parameters(), mean.split([p.numel() for p in model.parameters()])):
        p.grad = g.reshape(p.shape).clone()
