# diagnosis: too_many_left_out
import torch
import torch.distributed as dist


def evaluate(batches, sampler, classes):
    labels = torch.cat([labels for labels, _ in batches])
    predicted = torch.cat([predicted for _, predicted in batches])
    real = torch.ones(len(labels), dtype=torch.bool)
    if sampler.total_size > len(sampler.dataset):
        real[-1] = False
    labels, predicted = labels[real], predicted[real]
    counts = torch.stack(
        [
            torch.bincount(labels[labels == predicted], minlength=classes),
            torch.bincount(labels, minlength=classes),
        ]
    )
    dist.all_reduce(counts)
    right, seen = counts
    return right, seen, (right.sum() / seen.sum()).item()
