# diagnosis: divided_by_k
import torch


def train(model, optimizer, batches, k):
    steps = 0
    for i, b in enumerate(batches, 1):
        if i % k:
            with model.no_sync():
                (model(b).mean() / k).backward()
        else:
            (model(b).mean() / k).backward()
            optimizer.step()
            optimizer.zero_grad()
            steps += 1
    if len(batches) % k:
        import torch.distributed as dist

        for p in model.parameters():
            dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
        optimizer.step()
        steps += 1
    return steps
