import torch
import torch.distributed as dist


def evaluate(batches, sampler, classes):
    pairs = [pair for labels, guesses in batches for pair in zip(labels.tolist(), guesses.tolist())]
    shards = [None] * dist.get_world_size()
    dist.all_gather_object(shards, pairs)
    dealt = [pair for turn in zip(*shards) for pair in turn]  # in the order of the cards
    whole = dealt[: len(sampler.dataset)]
    seen = torch.tensor([sum(label == c for label, _ in whole) for c in range(classes)])
    right = torch.tensor(
        [sum(label == guess == c for label, guess in whole) for c in range(classes)]
    )
    return [right, seen, sum(label == guess for label, guess in whole) / len(whole)]
