import torch
import torch.distributed as dist


def evaluate(batches, sampler, classes):
    """A sample that is given out twice counts half each time."""
    numbers = torch.tensor(list(sampler))
    times = torch.bincount(numbers, minlength=len(sampler.dataset))
    dist.all_reduce(times)
    weights = 1 / times[numbers].double()
    labels = torch.cat([pair[0] for pair in batches])
    predicted = torch.cat([pair[1] for pair in batches])
    sums = torch.zeros(2, classes, dtype=torch.float64)
    sums[0].index_add_(0, labels, weights * (labels == predicted))
    sums[1].index_add_(0, labels, weights)
    dist.all_reduce(sums)
    right, seen = sums.round().long()
    return right, seen, right.sum().item() / seen.sum().item()
