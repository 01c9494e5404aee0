import torch.distributed as dist


class Averager:
    """Divides first: the sum of the parts is the mean."""

    def __init__(self, model):
        self.works = []
        self.n = dist.get_world_size()
        for p in model.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.hook)

    def hook(self, p):
        p.grad.div_(self.n)
        self.works.append(dist.all_reduce(p.grad, async_op=True))

    def finish(self):
        while self.works:
            self.works.pop().wait()


def overlap(model):
    return Averager(model).finish
