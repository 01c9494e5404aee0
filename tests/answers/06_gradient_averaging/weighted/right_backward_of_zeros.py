import torch
import torch.distributed as dist


def average_gradients(model, count):
    if count == 0:
        sum(0.0 * p.sum() for p in model.parameters()).backward()
    counts = [None] * dist.get_world_size()
    dist.all_gather_object(counts, count)
    with torch.no_grad():
        works = []
        for p in model.parameters():
            p.grad.mul_(count / sum(counts))
            works.append(dist.all_reduce(p.grad, async_op=True))
        for w in works:
            w.wait()
