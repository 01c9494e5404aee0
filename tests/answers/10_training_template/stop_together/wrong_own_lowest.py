# diagnosis: own_loss
import torch
import torch.distributed as dist


def train(train_epoch, validate, epochs, patience):
    mine = float("inf")
    best, bad = float("inf"), 0
    for epoch in range(epochs):
        train_epoch()
        total, count = validate()
        mine = min(mine, total / count)
        totals = torch.tensor([total, count])
        dist.all_reduce(totals)
        loss = (totals[0] / totals[1]).item()
        if loss < best:
            best, bad = loss, 0
        else:
            bad += 1
        if bad == patience:
            break
    return epoch + 1, mine
