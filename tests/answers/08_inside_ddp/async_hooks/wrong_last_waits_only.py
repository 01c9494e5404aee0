# diagnosis: from_before
import torch
import torch.distributed as dist


def overlap(model):
    works = []

    def start(p):
        works.append((p, dist.all_reduce(p.grad, async_op=True)))

    for p in model.parameters():
        if p.requires_grad:
            p.register_post_accumulate_grad_hook(start)
    n = sum(p.requires_grad for p in model.parameters())

    def finish():
        for p, w in works[-n:]:
            w.wait()
            p.grad /= dist.get_world_size()

    return finish
