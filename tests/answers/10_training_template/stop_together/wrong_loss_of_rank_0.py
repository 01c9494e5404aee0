# diagnosis: one_shard
import torch
import torch.distributed as dist


def train(train_epoch, validate, epochs, patience):
    best, bad = float("inf"), 0
    for epoch in range(epochs):
        train_epoch()
        totals = torch.tensor(validate())
        dist.broadcast(totals, src=0)
        loss = (totals[0] / totals[1]).item()
        if loss < best:
            best, bad = loss, 0
        else:
            bad += 1
        if bad == patience:
            break
    return epoch + 1, best
