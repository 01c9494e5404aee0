"""The same training on every rank, each with its own part of the data."""

import gc
import os

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from ddp_lessons.worker import record

digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16  # [1797, 64]
y = torch.tensor(digits.target)  # [1797]
train_set = TensorDataset(x[:1408], y[:1408])

local_rank = int(os.environ["LOCAL_RANK"])  # lesson 03
cuda = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])  # lesson 03
device = torch.device("cuda", local_rank) if cuda else torch.device("cpu")  # lesson 03
if cuda:
    torch.cuda.set_device(device)  # lesson 03
dist.init_process_group("nccl" if cuda else "gloo", device_id=device if cuda else None)  # lesson 02
rank, world_size = dist.get_rank(), dist.get_world_size()  # lesson 03
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)).to(device)
model = DDP(model, device_ids=[local_rank] if cuda else None)  # lessons 06 and 08
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

sampler = DistributedSampler(train_set)  # lesson 07
loader = DataLoader(train_set, batch_size=64 // world_size, sampler=sampler)  # lesson 07

for epoch in range(20):
    sampler.set_epoch(epoch)  # lesson 07
    for inputs, labels in loader:
        loss = nn.functional.cross_entropy(model(inputs.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

with torch.no_grad():
    guesses = model.module(x[1408:][rank::world_size].to(device)).argmax(dim=1)  # lesson 07
right = (guesses == y[1408:][rank::world_size].to(device)).sum()  # lesson 07
dist.all_reduce(right)  # lesson 04
if rank == 0:  # lesson 03
    print(f"{right.item()} of 389 test digits right")
record("test", right=right, steps=len(loader))
del model
gc.collect()  # a DDP model that outlives its group can make Python abort at its end
dist.destroy_process_group()  # lesson 02
