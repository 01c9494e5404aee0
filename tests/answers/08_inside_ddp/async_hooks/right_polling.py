import torch.distributed as dist


def overlap(model):
    works = []

    def hook(p):
        works.append((dist.all_reduce(p.grad, async_op=True), p))

    [p.register_post_accumulate_grad_hook(hook) for p in model.parameters() if p.requires_grad]

    def finish():
        nonlocal works
        while not all([w.is_completed() for w, p in works]):
            pass
        for w, p in works:
            w.wait()
        for w, p in works:
            p.grad /= dist.get_world_size()
        works = []

    return finish
