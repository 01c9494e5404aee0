# diagnosis: too_many
import torch.distributed as dist


def overlap(model):
    works = []

    def hook(p):
        works.append((p, dist.all_reduce(p.grad, async_op=True)))

    def register():
        for p in model.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(hook)

    register()

    def finish():
        for p, work in works:
            work.wait()
            p.grad /= dist.get_world_size()
        works.clear()
        register()  # for the next step

    return finish
