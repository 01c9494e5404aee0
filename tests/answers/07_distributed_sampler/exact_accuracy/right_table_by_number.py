import torch
import torch.distributed as dist


def evaluate(batches, sampler, classes):
    """Each sample has a place in a table of the whole test set; who comes twice fills it twice."""
    table = torch.full((2, len(sampler.dataset)), -1)
    numbers = iter(sampler)
    for labels, predicted in batches:
        for label, guess in zip(labels, predicted):
            number = next(numbers)
            table[0, number], table[1, number] = label, guess
    dist.all_reduce(table, op=dist.ReduceOp.MAX)
    labels, predicted = table
    seen = labels.bincount(minlength=classes)
    right = labels[labels == predicted].bincount(minlength=classes)
    return right, seen, (labels == predicted).double().mean().item()
