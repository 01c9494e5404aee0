# diagnosis: too_many_left_out
import math
import torch
import torch.distributed as dist


def evaluate(batches, sampler, classes):
    n, r, me = len(sampler.dataset), sampler.num_replicas, sampler.rank
    labels = torch.cat([one for one, _ in batches])
    predicted = torch.cat([one for _, one in batches])
    if r > 1 and me >= n % r:
        labels, predicted = labels[:-1], predicted[:-1]
    right = torch.bincount(labels[labels == predicted], minlength=classes)
    seen = torch.bincount(labels, minlength=classes)
    dist.all_reduce(right)
    dist.all_reduce(seen)
    return right, seen, (right.sum() / seen.sum()).item()
