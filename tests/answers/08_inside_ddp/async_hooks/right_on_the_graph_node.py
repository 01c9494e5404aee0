import torch
import torch.distributed as dist


def overlap(model):
    n = dist.get_world_size()
    works, nodes = [], []
    for p in model.parameters():
        if not p.requires_grad:
            continue
        node = p.expand_as(p).grad_fn.next_functions[0][0]

        def hook(*unused, p=p):
            works.append((p, dist.all_reduce(p.grad, async_op=True)))

        node.register_hook(hook)
        nodes.append(node)

    def finish():
        while works:
            p, w = works.pop()
            w.wait()
            p.grad.div_(n)
        nodes

    return finish
