# diagnosis: short_counts
import torch
import torch.distributed as dist


def evaluate(batches, sampler, classes):
    labels = torch.cat([labels for labels, _ in batches])
    predicted = torch.cat([predicted for _, predicted in batches])
    place = torch.arange(len(labels)) * sampler.num_replicas + sampler.rank
    real = place < len(sampler.dataset)
    labels, predicted = labels[real], predicted[real]
    right = torch.bincount(labels[labels == predicted])
    seen = torch.bincount(labels)
    dist.all_reduce(right)
    dist.all_reduce(seen)
    return right, seen, (right.sum() / seen.sum()).item()
