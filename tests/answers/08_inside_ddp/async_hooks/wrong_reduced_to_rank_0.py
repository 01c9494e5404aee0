# diagnosis: other_call
import torch
import torch.distributed as dist


def overlap(model):
    works = []

    def start(p):
        works.append((p, dist.reduce(p.grad, 0, async_op=True)))

    for p in model.parameters():
        if p.requires_grad:
            p.register_post_accumulate_grad_hook(start)

    def finish():
        for p, w in works:
            w.wait()
            p.grad /= dist.get_world_size()
        works.clear()

    return finish
