import torch.distributed as dist


def overlap(model):
    n = dist.get_world_size()
    under_way = {}

    def hook_of(name):
        def hook(gradient):
            mean = gradient / n
            under_way[name] = mean, dist.all_reduce(mean, async_op=True)

        return hook

    for name, p in model.named_parameters():
        if p.requires_grad:
            p.register_hook(hook_of(name))

    def finish():
        parameters = dict(model.named_parameters())
        for name in list(under_way):
            mean, work = under_way.pop(name)
            work.wait()
            parameters[name].grad = mean

    return finish
