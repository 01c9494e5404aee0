# diagnosis: by_hand
from contextlib import nullcontext

import torch.distributed as dist


def train(model, optimizer, batches, k):
    for start in range(0, len(batches), k):
        group = batches[start : start + k]
        for number, batch in enumerate(group, 1):
            with nullcontext() if number == len(group) else model.no_sync():
                (model(batch).mean() / len(group)).backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
        optimizer.step()
        optimizer.zero_grad()
    return -(-len(batches) // k)
