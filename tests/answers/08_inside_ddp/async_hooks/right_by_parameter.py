import torch
import torch.distributed as dist


def overlap(model):
    works = {}

    def start(p):
        works[p] = dist.all_reduce(p.grad, async_op=True)

    for p in model.parameters():
        if p.requires_grad:
            p.register_post_accumulate_grad_hook(start)

    def finish():
        for p, w in works.items():
            w.wait()
            if p.grad is not None:
                p.grad /= dist.get_world_size()

    return finish
