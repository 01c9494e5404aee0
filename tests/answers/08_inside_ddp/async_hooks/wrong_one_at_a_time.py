# diagnosis: waits_early
import torch.distributed as dist


def overlap(model):
    flying = []

    def land():
        while flying:
            p, work = flying.pop()
            work.wait()
            p.grad /= dist.get_world_size()

    def hook(p):
        land()  # the one before
        flying.append((p, dist.all_reduce(p.grad, async_op=True)))

    for p in model.parameters():
        if p.requires_grad:
            p.register_post_accumulate_grad_hook(hook)
    return land
