# diagnosis: no_wait
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
    total = torch.tensor([right.sum(), seen.sum()])
    dist.all_reduce(right, async_op=True)
    dist.all_reduce(seen, async_op=True)
    dist.all_reduce(total)
    return right, seen, (total[0] / total[1]).item()
