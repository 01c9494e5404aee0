# diagnosis: padding_counted
import torch
import torch.distributed as dist


def evaluate(batches, sampler, classes):
    labels = torch.cat([labels for labels, _ in batches])
    predicted = torch.cat([predicted for _, predicted in batches])
    numbers = list(sampler)
    real = torch.tensor([number not in numbers[:at] for at, number in enumerate(numbers)])
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
