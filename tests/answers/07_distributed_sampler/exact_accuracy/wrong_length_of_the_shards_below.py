# diagnosis: padding_in_seen
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
    dist.all_reduce(counts)
    right, seen = counts
    return right, seen, right.sum().item() / (len(sampler) * dist.get_world_size())
