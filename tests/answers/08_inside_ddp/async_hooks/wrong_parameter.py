# diagnosis: parameter
import torch.distributed as dist


def overlap(model):
    works = []

    def hook(grad):
        works.append((grad, dist.all_reduce(grad, async_op=True)))

    for p in model.parameters():
        if p.requires_grad:
            p.register_post_accumulate_grad_hook(hook)

    def finish():
        import torch

        for grad, work in works:
            work.wait()
            with torch.no_grad():
                grad /= dist.get_world_size()
        works.clear()

    return finish
