# diagnosis: wrong_type
import math
import torch
import torch.distributed as dist


def evaluate(batches, sampler, classes):
    n, r, me = len(sampler.dataset), sampler.num_replicas, sampler.rank
    keep = n // r + (me < n % r)
    labels = torch.cat([one for one, _ in batches])[:keep]
    predicted = torch.cat([one for _, one in batches])[:keep]
    right = torch.bincount(labels[labels == predicted], minlength=classes)
    seen = torch.bincount(labels, minlength=classes)
    dist.all_reduce(right)
    dist.all_reduce(seen)
    return right, seen, right.sum(0, keepdim=True) / seen.sum(0, keepdim=True)
