import torch
import torch.distributed as dist


def train(train_epoch, validate, epochs, patience):
    best_epoch, best = 0, float("inf")
    for epoch in range(1, epochs + 1):
        train_epoch()
        total, count = validate()
        total, count = torch.tensor(total), torch.tensor(count)
        dist.all_reduce(total)
        dist.all_reduce(count)
        loss = total.item() / count.item()
        if loss < best:
            best_epoch, best = epoch, loss
        stop = torch.tensor(int(epoch - best_epoch >= patience))
        dist.all_reduce(stop, op=dist.ReduceOp.MAX)
        if stop:
            return epoch, best
    return epochs, best
