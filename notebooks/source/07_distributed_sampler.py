# %% [markdown]
# # Give every rank its samples
#
# You will give every rank its part of the data, see who gets which sample in which epoch, and find the mistakes that no error reports.
#
# 40 min · 2 ranks on any laptop, 4, 5 and 8 in single cells · needs 01, 06 · new terms: shard, padding

# %% [markdown]
# ## Recall
#
# 1. Four DDP ranks use `DataLoader(batch_size=32)`. How large is the global batch?
# 2. Four ranks have the gradients 1, 2, 3 and 6. What does each hold after DDP's backward?
# 3. One rank calls `all_reduce` once more than the others. What happens there?
#
# <details><summary>Answers</summary>
#
# 1. 128 samples.
# 2. Their mean, 3.
# 3. Its call pairs with a later one of theirs. If there is none, it waits in vain.
#
# </details>

# %% [markdown]
# ## What you know already
#
# Three questions, one minute.

# %%
from ddp_lessons import questions

questions("07_distributed_sampler", before=None)  # run, put your letters in, run again

# %% [markdown]
# These are the lines of lesson 01 that this lesson explains.

# %%
from ddp_lessons import compare, launch, show, views

show("01_why_ddp/ddp.py", light="lesson 07")

# %% [markdown]
# ## A shard for each rank
#
# DDP averages gradients. It does not look at your data, so something else must give the ranks different samples. The samples that a rank gets in one epoch are its **shard**. The next script makes one by hand, then asks torch's `DistributedSampler`.

# %%
show("07_distributed_sampler/by_hand.py")

# %% [markdown]
# > **Guess.** 10,000 samples, numbered from 0, on 5 ranks: 2,000 for each. Which sample is rank 1's third?

# %%
guess = None  # a number of a sample
run = launch("07_distributed_sampler/by_hand.py", world_size=5)
assert all(run.values("equal"))  # by hand and from the sampler
compare(guess, run.values("first")[1][2])

# %% [markdown]
# Samples are dealt like cards: one to each rank, then the next round.
#
# <details><summary>Does every process copy the data?</summary>
#
# The sampler copies nothing: it deals numbers. But every rank has a dataset of its own, with all the samples: `run.values("data")`. What it loads into memory is there once for each rank. A file that is [memory-mapped and shared](https://docs.pytorch.org/docs/stable/generated/torch.from_file.html) is there once for all ranks of a machine.
#
# </details>

# %% [markdown]
# ## A new order in each epoch
#
# Without `shuffle=False` the sampler shuffles. All ranks must shuffle alike, or their shards would overlap. So they share a seed.

# %%
show("07_distributed_sampler/epochs.py", light=["DistributedSampler(", "set_epoch("])

# %% [markdown]
# > **Guess.** Somebody forgets `set_epoch`. Does rank 0 get its samples of epoch 0 again in epoch 1, in the same order? True or False?

# %%
guess = None  # True or False
same = launch("07_distributed_sampler/epochs.py", 2, args=["8", "2"])
fresh = launch("07_distributed_sampler/epochs.py", 2, args=["8", "2", "set_epoch"])
first, second = (record.values["shard"] for record in same[0].records)
compare(guess, first == second)

# %%
views.shard_map({"without set_epoch": same, "with set_epoch": fresh})

# %% [markdown]
# Without `set_epoch`, the sampler starts from the same seed each time, so both epochs have the same order. For a new order, the sampler must be told the epoch.

# %% [markdown]
# ## What is lost without it
#
# "Without `set_epoch`, each GPU learns only its own part of the data", say some posts. Now 10,000 samples on 5 ranks, 8 epochs.
#
# > **Guess.** Without `set_epoch`: how many of the 10,000 samples never go into an optimizer step? Vote, discuss, vote again.

# %%
guess = None  # your number
same = launch("07_distributed_sampler/epochs.py", 5, args=["10000", "8"])
fresh = launch("07_distributed_sampler/epochs.py", 5, args=["10000", "8", "set_epoch"])
met = set().union(*(record.values["shard"] for record in same.records))
compare(guess, 10_000 - len(met))

# %%
views.samples_met({"without set_epoch": same, "with set_epoch": fresh})

# %% [markdown]
# Rank 0 meets only its own fifth. But its model learns from all samples, because every step uses the gradients of all ranks. What is lost is the new order. Which samples make the first step of an epoch, with 4 from each rank?


# %%
def step_0(run, epoch):
    return {s for rank in run for s in rank.records[epoch].values["shard"][:4]}


step_0(same, 0) == step_0(same, 1), step_0(fresh, 0) == step_0(fresh, 1)

# %% [markdown]
# Without `set_epoch`, the same samples share a global batch in every epoch, in the same order.

# %% [markdown]
# ## When the samples do not divide
#
# In training, all ranks must take the same number of steps: each step all-reduces. So all shards have the same length. If the samples do not divide, the sampler gives some of them out once more. Those are the **padding**.

# %%
views.sampler(length=10, world_size=4)

# %% [markdown]
# Run the cell, then move the sliders. Which lengths need no padding on 4 ranks? What does `drop_last` do? And with `shuffle`, in another epoch?
#
# <details><summary>What you can find</summary>
#
# Multiples of 4. `drop_last` leaves out what does not divide, in place of padding. With `shuffle`, the epoch decides which ones are left out.
#
# </details>

# %% [markdown]
# ## Contrast: a test set, whole and padded
#
# In a test, padding matters. In training, a repeated sample counts twice in that epoch. A model gets samples 1 and 2 of 10 wrong.

# %%
show("07_distributed_sampler/accuracy.py", light=["right =", "shard", "all_reduce("])

# %% [markdown]
# > **Guess.** One process finds 0.8. Which accuracy do four ranks find, rounded to two digits?

# %%
guess = None  # your number
one = launch("07_distributed_sampler/accuracy.py", world_size=1)
four = launch("07_distributed_sampler/accuracy.py", world_size=4)
compare(guess, four.values("accuracy")[0])

# %%
[(run.values("evaluated")[0], run.values("accuracy")[0]) for run in (one, four)]

# %% [markdown]
# The ranks evaluated 12 samples, and sample 1 was wrong twice. `ddp.py` tests without a sampler: its slices may differ in length, so nothing is padded.

# %% [markdown]
# ## Fewer samples than ranks
#
# 3 samples, with the values 10, 11 and 12, on 8 ranks: `padded` without `drop_last`, `dropped` with it. Which do you expect to raise an error?

# %%
launch("07_distributed_sampler/few.py", world_size=8)

# %% [markdown]
# None does. The padding wraps around as often as it must. `drop_last` leaves every rank without a step: a training loop "succeeds" and has learned nothing. So check that `len(loader) > 0`.

# %% [markdown]
# ## Batch size and steps
#
# 64 samples, `DataLoader(batch_size=8)`. One rank takes 8 steps for an epoch; two ranks with a sampler take 4, as in lesson 01. `no_sampler.py` has `shuffle=True` where `steps.py` has the sampler.
#
# > **Guess.** How many steps does each of two ranks take without a sampler?

# %%
guess = None  # your number
one, two = (launch("01_why_ddp/steps.py", n) for n in (1, 2))
bare = launch("07_distributed_sampler/no_sampler.py", world_size=2)
compare(guess, bare.values("steps")[0])

# %%
for name, run in {"1 rank": one, "2 ranks": two, "2 ranks, no sampler": bare}.items():
    steps, batch = run.values("steps")[0], run.values("together")[0]
    print(f"{name}: {steps} steps of {batch} samples, {steps * batch} in all")

# %% [markdown]
# DDP does not split the data. Without a sampler each rank reads all of it: twice the work.
#
# - Global batch: `batch_size` times the number of ranks.
# - Steps: the length of a shard, divided by `batch_size`, rounded up.
#
# <details><summary>A sampler and <code>shuffle=True</code>?</summary>
#
# `DataLoader` [raises](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/utils/data/dataloader.py) `ValueError: sampler option is mutually exclusive with shuffle`. Shuffling is the sampler's work.
#
# </details>

# %% [markdown]
# ## Streams and loader workers
#
# A sampler needs samples with numbers. An `IterableDataset` is a stream without any. Here it has 6 items. Two ranks read it, each with `num_workers=2` loader workers, which are processes again.

# %%
launch("07_distributed_sampler/stream.py", world_size=2)

# %% [markdown]
# Each column counts over both ranks. `naive`: each of the 4 loader workers reads the whole stream. `split`: each takes every fourth item.
#
# <details><summary>How does a loader worker know its part?</summary>
#
# From its rank, and from [`get_worker_info()`](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.get_worker_info): see [stream.py](../ddp_lessons/scripts/07_distributed_sampler/stream.py). With a sampler none of this is needed. The sampler runs in the rank itself, and loader workers only fetch what it names.
#
# </details>

# %% [markdown]
# ## Break it
#
# "Every rank needs a seed of its own." No error comes. Say what is wrong, and which line does it, then unfold.

# %%
# %%ranks -n 4 -o broken
import torch.distributed as dist
from torch.utils.data import DistributedSampler
from ddp_lessons.worker import process_group, record

with process_group():
    sampler = DistributedSampler(range(16), seed=dist.get_rank())
    record("epoch", samples=16, shard=list(sampler))
    dist.barrier()

# %%
views.shard_map({"seed=rank": broken})

# %% [markdown]
# <details><summary>Fault, line and cause</summary>
#
# Some samples go to several ranks, others to nobody. The cause is `seed=dist.get_rank()`: each rank picks its places from a different order. Of many samples, 4 ranks would meet 1 − (3/4)⁴ = 68% in an epoch. The sampler's seed must be the same on all ranks.
#
# </details>

# %% [markdown]
# ## Complete it
#
# Two lines are missing. You are done when both ranks record 8 steps, and `changes` is True.

# %%
# %%ranks -n 2 -o mine
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler
from ddp_lessons.worker import process_group, record

with process_group():
    data, orders = list(range(64)), {}
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)  # your line: global batch 8
    for epoch in range(2):
        ...  # your line
        orders[epoch] = torch.cat(list(loader)).tolist()
    record("loader", steps=len(loader), changes=orders[0] != orders[1])

# %% [markdown]
# <details><summary>The two lines</summary>
#
# `loader = DataLoader(data, batch_size=8 // dist.get_world_size(), sampler=sampler)` and `sampler.set_epoch(epoch)`
#
# </details>

# %% [markdown]
# ## Exercise
#
# - [Write the sampler](../exercises/07_distributed_sampler.ipynb) · 18 min · every shard compared with torch's.
# - [Count exactly over padded shards](../exercises/07_distributed_sampler.ipynb) · 12 min · the counts on every rank.

# %% [markdown]
# ## What you know now
#
# The same three questions.

# %%
questions("07_distributed_sampler", after=None)  # run, put your letters in, run again

# %% [markdown]
# ## Without scrolling
#
# 1. You forget `set_epoch`. Which samples does the model never learn from?
# 2. 10 samples on 4 ranks. How long is each shard, without and with `drop_last`?
#
# <details><summary>Answers</summary>
#
# 1. None: all ranks together meet all of them (but for what `drop_last` leaves out). But the order is the same in every epoch.
# 2. 3 and 2.
#
# </details>

# %% [markdown]
# ## In your terminal
#
# ```
# .venv/bin/torchrun --nproc-per-node 4 ddp_lessons/scripts/07_distributed_sampler/accuracy.py
# ```

# %% [markdown]
# ## In practice
#
# - **On NCCL.** The same scripts. A sampler sends nothing: each rank works out its shard alone.
# - **Many machines.** The sampler asks the process group for rank and world size, so it deals to the ranks of all nodes. Each node needs all the data within reach.
# - **Fine print.** Call `set_epoch` [before the loop over the loader](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler). `DataLoader` has a `drop_last`, too: that one drops a last batch that is not full.

# %% [markdown]
# Next: [Look inside DDP](08_inside_ddp.ipynb)
