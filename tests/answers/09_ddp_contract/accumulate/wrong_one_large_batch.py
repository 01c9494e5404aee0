# diagnosis: together
import torch


def train(model, optimizer, batches, k):
    for start in range(0, len(batches), k):
        model(torch.cat(batches[start : start + k])).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return -(-len(batches) // k)
