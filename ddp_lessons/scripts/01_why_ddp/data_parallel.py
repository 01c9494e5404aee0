"""One training step of DataParallel on two devices, rebuilt: what each device holds is counted.

Copies that live for a moment are not. nn.DataParallel itself needs GPUs: where there are two, it
runs too, and its peak is recorded.
"""

import copy
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from ddp_lessons.worker import record

held = Counter()  # (device, kind) -> bytes


def hold(device, kind, tensors):
    held[device, kind] += sum(tensor.nbytes for tensor in tensors)


def kept(device, kind, known):
    """Count what autograd keeps for the backward, but for tensors counted already."""
    seen = {tensor.data_ptr() for tensor in known}

    def save(tensor):
        if tensor.data_ptr() not in seen:
            seen.add(tensor.data_ptr())
            hold(device, kind, [tensor])
        return tensor

    return torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor)


def forward(device, replica, chunk):
    with kept(device, "activations", (chunk, *replica.parameters())):
        return replica(chunk)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 1024))
optimizer = torch.optim.Adam(model.parameters())
inputs, labels = torch.randn(1024, 256), torch.arange(1024)  # the whole batch, on device 0
hold(0, "inputs", [inputs, labels])
hold(0, "parameters", model.parameters())

chunks = list(inputs.chunk(2))  # 1. scatter
chunks[1] = chunks[1].clone()
hold(1, "inputs", [chunks[1]])
replicas = [model, copy.deepcopy(model)]  # 2. replicate
hold(1, "parameters", replicas[1].parameters())
with ThreadPoolExecutor(2) as threads:  # 3. forward in threads of one process
    outputs = list(threads.map(forward, range(2), replicas, chunks))
hold(1, "outputs and loss", [outputs[1]])
gathered = torch.cat(outputs)  # 4. gather
with kept(0, "outputs and loss", (gathered, labels)):
    loss = cross_entropy(gathered, labels)  # 5. loss, on device 0
gathered.retain_grad()
loss.backward()
hold(0, "outputs and loss", [gathered, loss, gathered.grad])
for device in (0, 1):
    hold(device, "gradients", [p.grad for p in replicas[device].parameters()])
for mine, other in zip(model.parameters(), replicas[1].parameters(), strict=True):
    mine.grad += other.grad  # 6. reduce to device 0
optimizer.step()
state = [t for s in optimizer.state.values() for t in s.values() if t.dim()]
hold(0, "optimizer state", state)
for (device, kind), size in sorted(held.items(), key=lambda item: item[0][0]):
    record("held", device=device, kind=kind, bytes=size)
totals = [sum(size for (d, _), size in held.items() if d == device) for device in (0, 1)]
record("in all", device_0=totals[0], device_1=totals[1])

if torch.cuda.device_count() >= 2:
    real = nn.DataParallel(copy.deepcopy(model).cuda(), device_ids=[0, 1])
    adam = torch.optim.Adam(real.parameters())
    cross_entropy(real(inputs.cuda()), labels.cuda()).backward()
    adam.step()
    for device in (0, 1):
        record("measured", device=device, peak=torch.cuda.max_memory_allocated(device))
