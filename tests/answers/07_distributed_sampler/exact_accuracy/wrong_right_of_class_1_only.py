# diagnosis: only_right
import torch
import torch.distributed as dist


def evaluate(batches, sampler, classes):
    labels = torch.cat([labels for labels, _ in batches])
    predicted = torch.cat([predicted for _, predicted in batches])
    place = torch.arange(len(labels)) * sampler.num_replicas + sampler.rank
    real = place < len(sampler.dataset)
    labels, predicted = labels[real], predicted[real]
    right = torch.bincount(labels[(labels == predicted) & (labels == 1)], minlength=classes)
    seen = torch.bincount(labels, minlength=classes)
    dist.all_reduce(right)
    dist.all_reduce(seen)
    return right, seen, (right.sum() / seen.sum()).item()
