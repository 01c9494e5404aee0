# diagnosis: waits_early
import torch.distributed as dist


def overlap(model):
    def hook(p):
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()

    for p in model.parameters():
        if p.requires_grad:
            p.register_post_accumulate_grad_hook(hook)

    def finish():
        return None

    return finish
