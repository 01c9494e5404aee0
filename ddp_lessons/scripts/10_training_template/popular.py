"""The template that many posts print, in short, with the mistakes that they print."""

from pathlib import Path

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(0)
digits = load_digits()
dataset = TensorDataset(torch.tensor(digits.data).float() / 16, torch.tensor(digits.target))
loader = DataLoader(dataset, batch_size=64, sampler=DistributedSampler(dataset))
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
model = DDP(model, device_ids=[rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for epoch in range(2):
    for batch in loader:
        optimizer.zero_grad()
        loss = cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.2f}")
torch.save(model.state_dict(), Path(__file__).with_name("model.pt"))
dist.destroy_process_group()
