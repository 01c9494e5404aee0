# diagnosis: no_wait
import torch.distributed as dist


def overlap(model):
    last = [None]

    def hook(p):
        p.grad /= dist.get_world_size()
        last[0] = dist.all_reduce(p.grad, async_op=True)

    for p in model.parameters():
        if p.requires_grad:
            p.register_post_accumulate_grad_hook(hook)

    def finish():
        last[0].wait()

    return finish
