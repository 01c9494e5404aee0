# diagnosis: after_backward
import torch.distributed as dist


def overlap(model):
    ready = []
    for p in model.parameters():
        if p.requires_grad:
            p.register_post_accumulate_grad_hook(ready.append)

    def finish():
        works = [dist.all_reduce(p.grad, async_op=True) for p in ready]
        for p, work in zip(ready, works):
            work.wait()
            p.grad /= dist.get_world_size()
        ready.clear()

    return finish
