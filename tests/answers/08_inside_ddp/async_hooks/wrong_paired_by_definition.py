# diagnosis: written_early
import torch.distributed as dist


def overlap(model):
    works = []
    params = [p for p in model.parameters() if p.requires_grad]
    for p in params:
        p.register_post_accumulate_grad_hook(
            lambda p: works.append(dist.all_reduce(p.grad, async_op=True))
        )

    def finish():
        # the works are in the order of the backward, the parameters are not
        for p, work in zip(params, works):
            work.wait()
            p.grad /= dist.get_world_size()
        works.clear()

    return finish
