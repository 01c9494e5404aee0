# diagnosis: after_backward
import torch
import torch.distributed as dist


def overlap(model):
    def finish():
        params = [p for p in model.parameters() if p.grad is not None]
        flat = torch.cat([p.grad.flatten() for p in params])
        dist.all_reduce(flat)
        flat /= dist.get_world_size()
        for p, part in zip(params, flat.split([p.numel() for p in params])):
            p.grad.copy_(part.view_as(p))

    return finish
