"""The same training step with DDP: what each rank holds."""

import gc

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel as DDP

from ddp_lessons.worker import process_group, record


def hold(kind, tensors):
    size = sum(tensor.nbytes for tensor in tensors)
    record("held", device=dist.get_rank(), kind=kind, bytes=size)


def kept(kind, known):
    """Count what autograd keeps for the backward, but for tensors counted already."""
    seen = {tensor.data_ptr() for tensor in known}

    def save(tensor):
        if tensor.data_ptr() not in seen:
            seen.add(tensor.data_ptr())
            hold(kind, [tensor])
        return tensor

    return torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor)


with process_group() as device:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 1024)).to(device)
    ddp = DDP(model, device_ids=[device.index] if device.type == "cuda" else None)
    optimizer = torch.optim.Adam(model.parameters())
    rank, world_size = dist.get_rank(), dist.get_world_size()
    inputs = torch.randn(1024, 256)[rank::world_size].to(device)  # this rank's part of the batch
    labels = torch.arange(1024)[rank::world_size].to(device)

    with kept("activations", (inputs, *model.parameters())):
        outputs = ddp(inputs)
    outputs.retain_grad()
    with kept("outputs and loss", (outputs, labels)):
        loss = cross_entropy(outputs, labels)
    loss.backward()
    optimizer.step()

    hold("inputs", [inputs, labels])
    hold("parameters", model.parameters())
    hold("outputs and loss", [outputs, loss, outputs.grad])
    hold("gradients", [p.grad for p in model.parameters()])
    state = [t for s in optimizer.state.values() for t in s.values() if t.dim()]
    hold("optimizer state", state)
    buckets = ddp._get_ddp_logging_data()["bucket_sizes"]  # bytes of each, as text
    size = sum(int(size) for size in buckets.split(","))
    record("held", device=rank, kind="DDP buckets", bytes=size)
    del ddp
    gc.collect()
    dist.barrier()
