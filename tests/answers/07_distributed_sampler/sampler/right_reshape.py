import torch
import torch.distributed as dist


class Sampler:
    """A round of cards is a row, a rank is a column."""

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0):
        self.columns = dist.get_world_size() if num_replicas is None else num_replicas
        self.column = dist.get_rank() if rank is None else rank
        self.cards, self.shuffle, self.number = len(dataset), shuffle, seed
        self.seed = seed

    def set_epoch(self, epoch):
        self.number = self.seed + epoch

    def table(self):
        cards = torch.arange(self.cards)
        if self.shuffle:
            cards = cards[
                torch.randperm(self.cards, generator=torch.Generator().manual_seed(self.number))
            ]
        rows = (self.cards + self.columns - 1) // self.columns
        return cards.repeat(self.columns)[: rows * self.columns].reshape(rows, self.columns)

    def __len__(self):
        return len(self.table())

    def __iter__(self):
        return iter(self.table()[:, self.column].tolist())
