# diagnosis: rest_lost
from contextlib import nullcontext


def train(model, optimizer, batches, k):
    for i, batch in enumerate(batches):
        last = (i + 1) % k == 0
        with nullcontext() if last else model.no_sync():
            (model(batch).mean() / k).backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
    return -(-len(batches) // k)
