"""One process takes 20 steps, each on a global batch of 64 digits."""

import sys

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import parameters_to_vector

from ddp_lessons.worker import record

digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16  # [1797, 64]
y = torch.tensor(digits.target)  # [1797]
order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
x, y = x[order], y[order]

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)).to(device)
if "Adam" in sys.argv:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
else:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

for step in range(20):
    batch = slice(64 * step, 64 * step + 64)
    loss = cross_entropy(model(x[batch].to(device)), y[batch].to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    gradient = parameters_to_vector(p.grad for p in model.parameters())
    record("step", gradient=gradient, parameters=parameters_to_vector(model.parameters()))
