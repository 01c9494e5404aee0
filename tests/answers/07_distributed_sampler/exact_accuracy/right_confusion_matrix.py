import math
import torch
import torch.distributed as dist


def evaluate(batches, sampler, classes):
    n, r, me = len(sampler.dataset), sampler.num_replicas, sampler.rank
    keep = n // r + (me < n % r)
    labels = torch.cat([one for one, _ in batches])[:keep]
    predicted = torch.cat([one for _, one in batches])[:keep]
    confusion = torch.zeros(classes, classes, dtype=torch.int64)
    confusion.index_put_((labels, predicted), torch.ones_like(labels), accumulate=True)
    dist.all_reduce(confusion)
    return confusion.diagonal(), confusion.sum(1), confusion.trace().item() / confusion.sum().item()
