# diagnosis: divided_by_all
import torch


def train(model, optimizer, batches, k):
    steps = 0
    for at in range(0, len(batches), k):
        group = batches[at : at + k]
        with model.no_sync():
            for b in group[:-1]:
                (model(b).mean() / len(batches)).backward()
        (model(group[-1]).mean() / len(batches)).backward()
        optimizer.step()
        optimizer.zero_grad()
        steps += 1
    return steps
