# diagnosis: never_synced
from contextlib import nullcontext


def train(model, optimizer, batches, k):
    for i, batch in enumerate(batches):
        size = min(k, len(batches) - i // k * k)
        with nullcontext() if i % k == k - 1 else model.no_sync():
            (model(batch).mean() / size).backward()
        if i % k == k - 1 or i == len(batches) - 1:
            optimizer.step()
            optimizer.zero_grad()
    return -(-len(batches) // k)
