# diagnosis: no_gradient
import torch.distributed as dist


def overlap(model):
    params = [p for p in model.parameters() if p.requires_grad]
    works = []

    def hook(p):
        works.append(dist.all_reduce(p.grad, async_op=True))

    for p in params:
        p.register_post_accumulate_grad_hook(hook)

    def finish():
        for work in works:
            work.wait()
        works.clear()
        for p in params:
            p.grad /= dist.get_world_size()

    return finish
