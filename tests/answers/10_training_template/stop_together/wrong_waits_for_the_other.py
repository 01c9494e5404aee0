# diagnosis: mismatch
import torch
import torch.distributed as dist


def train(train_epoch, validate, epochs, patience):
    best, ran = float("inf"), 0
    for _ in range(epochs):
        train_epoch()
        pair = torch.tensor(validate())
        if dist.get_rank() == 0:
            dist.all_reduce(pair)
        ran += 1
        best = min(best, float(pair[0] / pair[1]))
        if ran > 4:
            break
    return ran, best
