import torch
import torch.distributed as dist


def train(train_epoch, validate, epochs, patience):
    history, ran = [], 0
    stop = False
    while not stop:
        train_epoch()
        ran += 1
        parts = [None] * dist.get_world_size() if dist.get_rank() == 0 else None
        dist.gather_object(validate(), parts, dst=0)
        told = [None]
        if parts:
            losses, counts = zip(*parts, strict=True)
            history.append(sum(losses) / sum(counts))
            low = min(history)
            stop = ran == epochs or ran - 1 - history.index(low) >= patience
            told = [(stop, low)]
        dist.broadcast_object_list(told, src=0)
        stop, low = told[0]
    return ran, low
