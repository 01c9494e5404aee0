# diagnosis: from_before
import torch.distributed as dist

works = []


def overlap(model):
    def hook(p):
        p.grad /= dist.get_world_size()
        works.append(dist.all_reduce(p.grad, async_op=True))

    for p in model.parameters():
        if p.requires_grad:
            p.register_post_accumulate_grad_hook(hook)

    def finish():
        for work in works:
            work.wait()

    return finish
