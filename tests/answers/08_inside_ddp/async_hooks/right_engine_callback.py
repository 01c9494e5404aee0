import torch
import torch.distributed as dist

# The engine calls back when the backward is over, as it does for DDP.


def overlap(model):
    n, flying = dist.get_world_size(), {}

    def land():
        for p, work in flying.items():
            work.wait()
            p.grad.mul_(1 / n)
        flying.clear()

    def take_off(p):
        if not flying:
            torch.autograd.Variable._execution_engine.queue_callback(land)
        flying[p] = dist.all_reduce(p.grad, async_op=True)

    for p in filter(lambda p: p.requires_grad, model.parameters()):
        p.register_post_accumulate_grad_hook(take_off)
    return lambda: None
