# diagnosis: reduced_again
import torch
import torch.distributed as dist


def evaluate(batches, sampler, classes):
    right, seen = torch.zeros(classes, dtype=torch.int64), torch.zeros(classes, dtype=torch.int64)
    place = sampler.rank
    for labels, predicted in batches:
        for label, guess in zip(labels.tolist(), predicted.tolist()):
            if place < len(sampler.dataset):
                seen[label] += 1
                right[label] += label == guess
            place += sampler.num_replicas
        dist.all_reduce(right)
        dist.all_reduce(seen)
    return right, seen, (right.sum() / seen.sum()).item()
