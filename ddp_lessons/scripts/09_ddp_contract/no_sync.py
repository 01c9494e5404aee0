"""no_sync around the forward, the backward, both or neither. A hook counts the all-reduces."""

import gc
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel as DDP

from ddp_lessons.worker import process_group, record


def counted(calls, bucket):  # DDP calls this in place of its own all-reduce
    calls.append(bucket.index())
    return allreduce_hook(None, bucket)


with process_group() as device:
    x = torch.tensor([[dist.get_rank() + 1.0]], device=device)  # local gradients 1 and 2
    inner = nn.Linear(1, 1, bias=False).to(device)
    model, calls = DDP(inner), []
    model.register_comm_hook(calls, counted)
    cases = {
        "around neither": (nullcontext, nullcontext),
        "around both": (model.no_sync, model.no_sync),
        "around the backward": (nullcontext, model.no_sync),
        "around the forward": (model.no_sync, nullcontext),
    }

    for name, (forward, backward) in cases.items():
        inner.weight.grad = None
        calls.clear()
        with forward():
            loss = model(x).mean()
        with backward():
            loss.backward()
        record(name, gradient=inner.weight.grad.item(), all_reduces=len(calls))

    inner.weight.grad = None
    calls.clear()
    model.require_backward_grad_sync = False  # no_sync lowers this flag
    loss = model(x).mean()
    model.require_backward_grad_sync = True  # too late for this backward
    loss.backward()
    record("flag raised between", gradient=inner.weight.grad.item(), all_reduces=len(calls))
    del model, cases, forward, backward
    gc.collect()
    dist.barrier()
