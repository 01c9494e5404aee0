# diagnosis: nothing_returned
from contextlib import nullcontext


def train(model, optimizer, batches, k):
    for start in range(0, len(batches), k):
        group = batches[start : start + k]
        for number, batch in enumerate(group, 1):
            with nullcontext() if number == len(group) else model.no_sync():
                (model(batch).mean() / len(group)).backward()
        optimizer.step()
        optimizer.zero_grad()
