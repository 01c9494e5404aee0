# diagnosis: not_finite
import torch
import torch.distributed as dist


def evaluate(batches, sampler, classes):
    labels = torch.cat([labels for labels, _ in batches])
    predicted = torch.cat([predicted for _, predicted in batches])
    place = torch.arange(len(labels)) * sampler.num_replicas + sampler.rank
    real = place < len(sampler.dataset)
    labels, predicted = labels[real], predicted[real]
    counts = torch.stack(
        [
            torch.bincount(labels[labels == predicted], minlength=classes),
            torch.bincount(labels, minlength=classes),
        ]
    )
    local = counts[0].sum() / counts[1].sum() * (counts[1].sum() / len(sampler.dataset))
    dist.all_reduce(counts)
    dist.all_reduce(local)
    right, seen = counts
    return right, seen, local.item()
