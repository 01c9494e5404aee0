# diagnosis: one_late
import torch
import torch.distributed as dist


def train(train_epoch, validate, epochs, patience):
    best, bad = float("inf"), 0
    for epoch in range(epochs):
        train_epoch()
        totals = torch.tensor(validate())
        dist.all_reduce(totals)
        loss = (totals[0] / totals[1]).item()
        if loss < best:
            best, bad = loss, 0
        else:
            bad += 1
        if bad > patience:
            break
    return epoch + 1, best
