# diagnosis: one_shard
import torch
import torch.distributed as dist


def train(train_epoch, validate, epochs, patience):
    best, bad = float("inf"), 0
    for epoch in range(epochs):
        train_epoch()
        total, count = validate()
        loss = total / count
        bad = 0 if loss < best else bad + 1
        best = min(best, loss)
        stop = torch.tensor(bad >= patience)
        dist.broadcast(stop, src=0)
        if stop:
            break
    return epoch + 1, best
