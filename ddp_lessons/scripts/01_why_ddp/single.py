"""Train a small network on handwritten digits, in one process."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

from ddp_lessons.worker import record

digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16  # [1797, 64]
y = torch.tensor(digits.target)  # [1797]
train_set = TensorDataset(x[:1408], y[:1408])

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

shuffle = torch.Generator()
sampler = RandomSampler(train_set, generator=shuffle)
loader = DataLoader(train_set, batch_size=64, sampler=sampler)

for epoch in range(20):
    shuffle.manual_seed(epoch)
    for inputs, labels in loader:
        loss = nn.functional.cross_entropy(model(inputs.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

with torch.no_grad():
    guesses = model(x[1408:].to(device)).argmax(dim=1)
right = (guesses == y[1408:].to(device)).sum()

print(f"{right.item()} of 389 test digits right")
record("test", right=right, steps=len(loader))
