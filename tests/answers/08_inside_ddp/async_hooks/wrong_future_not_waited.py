# diagnosis: written_early
import torch.distributed as dist


def overlap(model):
    futures = []

    def hook(p):
        futures.append(dist.all_reduce(p.grad, async_op=True).get_future())

    for p in model.parameters():
        if p.requires_grad:
            p.register_post_accumulate_grad_hook(hook)

    def finish():
        for p in model.parameters():
            if p.grad is not None:
                p.grad /= dist.get_world_size()
        for future in futures:
            future.wait()
        futures.clear()

    return finish
