# diagnosis: sum
import torch.distributed as dist


def overlap(model):
    works = []

    def hook(p):
        works.append(dist.all_reduce(p.grad, async_op=True))

    for p in model.parameters():
        if p.requires_grad:
            p.register_post_accumulate_grad_hook(hook)

    def finish():
        for work in works:
            work.wait()
        works.clear()

    return finish
