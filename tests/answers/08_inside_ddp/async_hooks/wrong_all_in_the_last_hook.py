# diagnosis: late_start
import torch.distributed as dist


def overlap(model):
    params = [p for p in model.parameters() if p.requires_grad]
    ready, works = [], []

    def hook(p):
        ready.append(p)
        if len(ready) == len(params):
            works.extend(dist.all_reduce(p.grad, async_op=True) for p in ready)

    for p in params:
        p.register_post_accumulate_grad_hook(hook)

    def finish():
        for p, work in zip(ready, works):
            work.wait()
            p.grad /= dist.get_world_size()
        ready.clear()
        works.clear()

    return finish
