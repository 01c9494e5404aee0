# diagnosis: mean_of_means
import torch
import torch.distributed as dist


def train(train_epoch, validate, epochs, patience):
    best, bad = float("inf"), 0
    for epoch in range(epochs):
        train_epoch()
        total, count = validate()
        loss = torch.tensor(total / count)
        dist.all_reduce(loss)
        loss = loss.item() / dist.get_world_size()
        bad = 0 if loss < best else bad + 1
        best = min(best, loss)
        if bad >= patience:
            break
    return epoch + 1, best
