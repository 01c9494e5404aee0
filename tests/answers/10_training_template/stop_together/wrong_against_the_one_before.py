# diagnosis: previous
import torch
import torch.distributed as dist


def train(train_epoch, validate, epochs, patience):
    last, best, bad = float("inf"), float("inf"), 0
    for epoch in range(epochs):
        train_epoch()
        totals = torch.tensor(validate())
        dist.all_reduce(totals)
        loss = (totals[0] / totals[1]).item()
        if loss < last:
            bad = 0
        else:
            bad += 1
        last, best = loss, min(best, loss)
        if bad == patience:
            break
    return epoch + 1, best
