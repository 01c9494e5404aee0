# diagnosis: from_before
import torch.distributed as dist


def overlap(model):
    works = []

    def hook(p):
        works.append((p, dist.all_reduce(p.grad, async_op=True)))

    for p in model.parameters():
        if p.requires_grad:
            p.register_post_accumulate_grad_hook(hook)

    def finish():
        for p, work in works:
            work.wait()
            p.grad /= dist.get_world_size()

    return finish
