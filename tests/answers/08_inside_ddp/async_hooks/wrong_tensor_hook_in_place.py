# diagnosis: copy
import torch.distributed as dist


def overlap(model):
    works = []

    for p in model.parameters():
        if p.requires_grad:
            p.register_hook(lambda g: works.append((g, dist.all_reduce(g, async_op=True))))

    def finish():
        for g, work in works:
            work.wait()
            g /= dist.get_world_size()
        works.clear()

    return finish
