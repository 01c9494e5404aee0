import torch.distributed as dist


def overlap(model):
    def hook(p):
        p.work = dist.all_reduce(p.grad.data.view(-1), op=dist.ReduceOp.SUM, async_op=True)

    for module in model.modules():
        for p in module.parameters(recurse=False):
            p.work = None
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(hook)

    def finish():
        for p in model.parameters():
            if p.work is None:
                continue
            p.work.wait()
            p.work = None
            p.grad = p.grad / dist.get_world_size()

    return finish
