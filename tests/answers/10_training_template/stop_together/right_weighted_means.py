import torch
import torch.distributed as dist


def train(train_epoch, validate, epochs, patience):
    best, left = float("inf"), patience
    for number in range(1, epochs + 1):
        train_epoch()
        total, count = validate()
        everybody = torch.tensor(float(count))
        dist.all_reduce(everybody)
        loss = torch.tensor(total / everybody.item(), dtype=torch.float64)
        dist.all_reduce(loss)
        loss = round(loss.item(), 9)
        left = patience if loss < best else left - 1
        best = min(loss, best)
        if left == 0:
            return number, best
    return number, best
