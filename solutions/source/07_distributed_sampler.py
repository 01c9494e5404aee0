# %% [markdown]
# # Exercises: deal samples, count them exactly
#
# Two exercises. The second does not need the first.

# %% [markdown]
# ## Write the sampler
#
# 18 min · moderate · after [lesson 07](../notebooks/07_distributed_sampler.ipynb)
#
# Whoever wants another order, such as long texts with long ones, writes a sampler. Begin with one that gives what torch's `DistributedSampler` gives. Its rules:
#
# - The order is 0, 1, 2, ... With `shuffle` it is `torch.randperm`, from a `torch.Generator` seeded with seed + epoch.
# - The padding: the order begins again, until all ranks get equally many.
# - Then it is dealt like cards.
#
# The check compares every pass with torch's: many lengths, seeds, epochs and numbers of ranks. Your sampler sends nothing, leaves the process's own random numbers alone, and does not use torch's.
#
# Fill in the cell, run it, then run the check.

# %%
from ddp_lessons import check, views

# %%
# %%exercise 07_distributed_sampler/sampler
import math
import torch
import torch.distributed as dist


class Sampler:
    """The numbers of one rank's samples, as torch's DistributedSampler gives them.

    dataset has a length, at least 1. Where num_replicas or rank is None, it is the process
    group's. The epoch is 0 until set_epoch. There is no drop_last.
    """

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0):
        ### BEGIN SOLUTION
        self.size = len(dataset)
        self.ranks = dist.get_world_size() if num_replicas is None else num_replicas
        self.rank = dist.get_rank() if rank is None else rank
        self.shuffle, self.seed, self.epoch = shuffle, seed, 0
        ### END SOLUTION

    def set_epoch(self, epoch):
        """From the next pass on, this epoch counts."""
        ### BEGIN SOLUTION
        self.epoch = epoch
        ### END SOLUTION

    def __len__(self):
        """How many samples this rank gets in one epoch, padding included."""
        ### BEGIN SOLUTION
        return math.ceil(self.size / self.ranks)
        ### END SOLUTION

    def __iter__(self):
        """An iterator over this rank's samples in this epoch: their numbers, each an int."""
        ### BEGIN SOLUTION
        order = list(range(self.size))
        if self.shuffle:
            generator = torch.Generator().manual_seed(self.seed + self.epoch)
            order = torch.randperm(self.size, generator=generator).tolist()
        total = len(self) * self.ranks
        while len(order) < total:
            order += order[: total - len(order)]
        return iter(order[self.rank :: self.ranks])
        ### END SOLUTION

# %%
check("07_distributed_sampler/sampler")

# %% [markdown]
# <details><summary>Hint 1: what does a sampler keep?</summary>
#
# Its place, the seed and the epoch. Nothing else may decide what a pass gives: not an earlier pass, not the rank where the order is made. And a given rank 0 is not a missing one.
#
# </details>
#
# <details><summary>Hint 2: how long is a shard?</summary>
#
# As long as the others: the samples divided by the ranks, rounded up. So all shards together have that many times the ranks. How many of them are padding? Try 10 samples on 4 ranks, then 1 sample on 4.
#
# </details>
#
# <details><summary>Hint 3: the outline of a pass</summary>
#
# Three steps, and only the last one looks at the rank. The order of all samples, the same on every rank. Then more from its start, as often as it takes. Then every n-th of them, from your own place on.
#
# </details>

# %% [markdown] tags=["solution"]
# ### Why it works
#
# All ranks make the same order, because it depends on nothing but the seed and the epoch. So they can deal it without a word. The generator is made anew for each pass, so a pass leaves no trace, and a training that resumes in epoch 7 gets the order of epoch 7. The padding comes after the shuffle and before the deal: all of it stands at the end of the order.
#
# The picture shows what this sampler dealt to 4 ranks in one case of the check.

# %% tags=["solution"]
views.shard_map({"this sampler": check("07_distributed_sampler/sampler").runs[1]})

# %% [markdown] tags=["solution"]
# ### It could also be
#
# No padded list at all: the place in the order wraps around, `order[place % self.size] for place in range(self.rank, total, self.ranks)`. And any function from epoch to order could stand in place of `randperm`, as long as all ranks compute it alike.

# %% [markdown]
# ## Count exactly over padded shards
#
# 12 min · moderate · after [lesson 07](../notebooks/07_distributed_sampler.ipynb)
#
# With padding counted, an accuracy depends on the number of ranks. Count each sample once.
#
# Each rank has tested the shard that `sampler`, a `DistributedSampler`, dealt to it. It calls `evaluate(batches, sampler, classes)` and returns
#
# - `right` and `seen`: for each class, how many samples are predicted right, and how many there are,
# - `accuracy`: how much of the whole test set is right.
#
# All three are about the samples of all ranks, each once, and are the same on every rank. The sampler may shuffle. It has a `dataset`, `num_replicas` and `rank`. A rank may have nothing but padding.
#
# The check compares them with one process's, on 1 to 4 ranks.

# %%
# %%exercise 07_distributed_sampler/exact_accuracy
import torch
import torch.distributed as dist


def evaluate(batches, sampler, classes):
    """right, seen and accuracy of the whole test set, the same on every rank.

    batches: a list of (labels, predicted), int64 tensors with numbers of classes, in the order in
    which the sampler gave the samples. classes: how many classes there are.

    Returns right and seen, int64 tensors of shape [classes], and accuracy, a float. Changes nothing.
    """
    ### BEGIN SOLUTION
    labels = torch.cat([labels for labels, _ in batches])
    predicted = torch.cat([predicted for _, predicted in batches])

    place = torch.arange(len(labels)) * sampler.num_replicas + sampler.rank
    real = place < len(sampler.dataset)
    labels, hit = labels[real], (labels == predicted)[real]

    right = torch.bincount(labels[hit], minlength=classes)
    seen = torch.bincount(labels, minlength=classes)
    dist.all_reduce(right)
    dist.all_reduce(seen)
    return right, seen, (right.sum() / seen.sum()).item()
    ### END SOLUTION

# %%
check("07_distributed_sampler/exact_accuracy")

# %% [markdown]
# <details><summary>Hint 1: which samples are padding?</summary>
#
# A rank cannot tell from its own samples: in its shard a padded sample stands there once, like all others. But it can tell from where the sample was in the deal. Look at the lesson's picture of 10 samples on 4 ranks: where does the hatched part stand? And with `shuffle`?
#
# </details>
#
# <details><summary>Hint 2: the place in the deal</summary>
#
# The first round of cards goes to ranks 0, 1, ..., then comes the second. Which card of the whole deal is the third one of rank 1 on 4 ranks? From which card on is it padding?
#
# </details>
#
# <details><summary>Hint 3: the outline</summary>
#
# Join the batches. Work out each entry's place in the deal, and keep the entries that come before the padding. Count them by class, zeros included. Add the counts up over all ranks, on all ranks, and only then divide.
#
# </details>

# %% [markdown] tags=["solution"]
# ### Why it works
#
# The padding is what is dealt after every sample has been dealt once. Entry k of rank r is card k · n + r of the deal, on n ranks. So each rank knows which of its entries are padding, without asking anybody. A shuffle does not matter: it changes which sample a card is, not where the padding stands.

# %% tags=["solution"]
views.sampler(length=10, world_size=4, shuffle=True, epoch=3)

# %% [markdown] tags=["solution"]
# Counts add up, rates do not. `bincount` with `minlength` gives a rank without real samples its zeros, and it makes its calls like all others.

# %% tags=["solution"]
views.calls(check("07_distributed_sampler/exact_accuracy").runs[1])

# %% [markdown] tags=["solution"]
# ### It could also be
#
# Each rank gathers everybody's `list(sampler)`, labels and predictions with `all_gather`, and keeps one entry for each number. That also works where the rule of the padding is not known, and it sends much more.
