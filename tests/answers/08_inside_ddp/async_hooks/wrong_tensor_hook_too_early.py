# diagnosis: too_early
import torch.distributed as dist


def overlap(model):
    works = []

    for p in model.parameters():
        if p.requires_grad:
            p.register_hook(
                lambda _, p=p: works.append((p, dist.all_reduce(p.grad, async_op=True)))
            )

    def finish():
        for p, work in works:
            work.wait()
            p.grad /= dist.get_world_size()
        works.clear()

    return finish
