# diagnosis: wrong_one
from contextlib import nullcontext


def train(model, optimizer, batches, k):
    for i, batch in enumerate(batches):
        size = min(k, len(batches) - i // k * k)
        with nullcontext() if i % k == 0 else model.no_sync():
            (model(batch).mean() / size).backward()
        if (i + 1) % k == 0 or i + 1 == len(batches):
            optimizer.step()
            optimizer.zero_grad()
    return -(-len(batches) // k)
