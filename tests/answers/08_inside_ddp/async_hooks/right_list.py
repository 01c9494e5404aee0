import torch.distributed as dist


def overlap(model):
    started = []

    def start(parameter):
        started.append((parameter, dist.all_reduce(parameter.grad, async_op=True)))

    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(start)

    def finish():
        for parameter, work in started:
            work.wait()
            parameter.grad /= dist.get_world_size()
        started.clear()

    return finish
