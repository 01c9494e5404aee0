# diagnosis: wrong_one
from contextlib import nullcontext


def train(model, optimizer, batches, k):
    for start in range(0, len(batches), k):
        group = batches[start : start + k]
        for i, batch in enumerate(group):
            with nullcontext() if i == len(group) - 2 else model.no_sync():
                (model(batch).mean() / len(group)).backward()
        optimizer.step()
        optimizer.zero_grad()
    return -(-len(batches) // k)
