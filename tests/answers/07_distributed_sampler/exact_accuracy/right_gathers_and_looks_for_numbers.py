import torch
import torch.distributed as dist


def evaluate(batches, sampler, classes):
    rows = torch.stack(
        [
            torch.tensor(list(sampler)),
            torch.cat([labels for labels, _ in batches]),
            torch.cat([predicted for _, predicted in batches]),
        ],
        dim=1,
    )
    everyones = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
    dist.all_gather(everyones, rows)
    found = {number: (label, guess) for number, label, guess in torch.cat(everyones).tolist()}
    assert len(found) == len(sampler.dataset)
    right, seen = [0] * classes, [0] * classes
    for label, guess in found.values():
        seen[label] += 1
        right[label] += label == guess
    return torch.tensor(right), torch.tensor(seen), sum(right) / sum(seen)
