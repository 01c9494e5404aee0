# diagnosis: local
import torch
import torch.distributed as dist


def train(train_epoch, validate, epochs, patience):
    best, bad, ran = float("inf"), 0, 0
    for _ in range(epochs):
        train_epoch()
        ran += 1
        total, count = validate()
        bad = 0 if total / count < best else bad + 1
        best = min(best, total / count)
        if bad >= patience:
            break
    dist.barrier()
    return ran, best
