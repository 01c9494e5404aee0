# diagnosis: inverted
from contextlib import nullcontext


def train(model, optimizer, batches, k):
    for start in range(0, len(batches), k):
        group = batches[start : start + k]
        for number, batch in enumerate(group, 1):
            with model.no_sync() if number == len(group) else nullcontext():
                (model(batch).mean() / len(group)).backward()
        optimizer.step()
        optimizer.zero_grad()
    return -(-len(batches) // k)
