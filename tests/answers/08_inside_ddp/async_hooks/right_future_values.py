import torch.distributed as dist


def overlap(model):
    """As a communication hook of DDP does it: the future's value is the tensor."""
    n, means = dist.get_world_size(), []

    def hook(p):
        future = dist.all_reduce(p.grad, async_op=True).get_future()
        means.append(future.then(lambda done: done.value()[0].div_(n)))

    for p in model.parameters():
        if p.requires_grad:
            p.register_post_accumulate_grad_hook(hook)

    def finish():
        for mean in means:
            mean.wait()
        means.clear()

    return finish
