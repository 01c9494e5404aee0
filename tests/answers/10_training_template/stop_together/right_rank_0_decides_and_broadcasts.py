import torch
import torch.distributed as dist


def train(train_epoch, validate, epochs, patience):
    best, since, ran = None, 0, 0
    while ran < epochs:
        train_epoch()
        ran += 1
        pair = torch.tensor(validate(), dtype=torch.float64)
        dist.reduce(pair, dst=0)
        news = torch.zeros(2, dtype=torch.float64)
        if dist.get_rank() == 0:
            loss = float(pair[0] / pair[1])
            since = 0 if best is None or loss < best else since + 1
            best = loss if best is None else min(loss, best)
            news = torch.tensor([float(since == patience), best], dtype=torch.float64)
        dist.broadcast(news, src=0)
        if news[0]:
            break
    return ran, news[1].item()
