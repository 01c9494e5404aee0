# diagnosis: too_early
import torch.distributed as dist


def overlap(model):
    works = []

    def hook(module, grad_input, grad_output):
        for p in module.parameters():
            works.append((p, dist.all_reduce(p.grad, async_op=True)))

    for module in model.children():
        module.register_full_backward_hook(hook)

    def finish():
        for p, work in works:
            work.wait()
            p.grad /= dist.get_world_size()
        works.clear()

    return finish
