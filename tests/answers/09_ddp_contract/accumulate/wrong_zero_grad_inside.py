# diagnosis: emptied_inside
from contextlib import nullcontext


def train(model, optimizer, batches, k):
    for start in range(0, len(batches), k):
        group = batches[start : start + k]
        for number, batch in enumerate(group, 1):
            with nullcontext() if number == len(group) else model.no_sync():
                loss = model(batch).mean() / len(group)
                optimizer.zero_grad()
                loss.backward()
        optimizer.step()
    return -(-len(batches) // k)
