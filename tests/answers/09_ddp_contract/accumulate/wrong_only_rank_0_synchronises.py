# diagnosis: mismatch
from contextlib import nullcontext

import torch.distributed as dist


def train(model, optimizer, batches, k):
    for start in range(0, len(batches), k):
        group = batches[start : start + k]
        for number, batch in enumerate(group, 1):
            last = number == len(group) and dist.get_rank() == 0
            with nullcontext() if last else model.no_sync():
                (model(batch).mean() / len(group)).backward()
        optimizer.step()
        optimizer.zero_grad()
    return -(-len(batches) // k)
