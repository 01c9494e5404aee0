# %% [markdown]
# # Exercises: stop together, and port a script
#
# Two exercises: an early stop that all ranks decide, and the end of the course: your own port of a script for one process.

# %%
from ddp_lessons import check, views

# %% [markdown]
# ## Stop together
#
# 10 min · moderate · after [lesson 10](../notebooks/10_training_template.ipynb)
#
# Early stopping ends a training when the validation loss no longer falls. Each rank knows the loss of its own shard only, and shards differ in size.
#
# - In each epoch, call `train_epoch()`, then `validate()`, which returns the sum of the losses of this rank's shard and the number of its samples.
# - What counts is the mean loss over all ranks' samples.
# - Stop after `patience` epochs in a row that brought no new lowest loss. An equal loss is not lower. Stop after `epochs` in any case.
# - Return, on every rank, how many epochs ran and the lowest loss.
#
# Checked on 1 to 4 ranks: all must stop after the same, right epoch.

# %%
# %%exercise 10_training_template/stop_together
import torch
import torch.distributed as dist


def train(train_epoch, validate, epochs, patience):
    """Train with early stopping. Returns (epochs that ran, an int; lowest loss, a float).

    train_epoch() holds collectives, as a backward with DDP does: all ranks must call it.
    validate() returns (sum, a float; number of samples, an int, at least 1), and holds none.
    epochs and patience are at least 1, and the same on all ranks.
    """
    ### BEGIN SOLUTION
    best, waited = float("inf"), 0
    for epoch in range(1, epochs + 1):
        train_epoch()
        totals = torch.tensor(validate(), dtype=torch.float64)
        dist.all_reduce(totals)
        loss = (totals[0] / totals[1]).item()
        waited = 0 if loss < best else waited + 1
        best = min(best, loss)
        if waited == patience:
            return epoch, best
    return epochs, best
    ### END SOLUTION


# %%
check("10_training_template/stop_together")

# %% [markdown]
# <details><summary>Hint 1: who may decide?</summary>
#
# If every rank decides by itself, what must be equal on all ranks, so that all decide the same?
#
# </details>
#
# <details><summary>Hint 2: one number from all shards</summary>
#
# A mean over all samples needs two totals. Both can travel in one call, and the division comes last.
#
# </details>
#
# <details><summary>Hint 3: the outline</summary>
#
# Two variables: the lowest loss so far, and how many epochs in a row have not lowered it. In each epoch: train, validate, total over the ranks, update both variables, leave if the second one has reached `patience`. Where is the second one set to 0?
#
# </details>

# %% [markdown] tags=["solution"]
# ### Why it works
#
# An all-reduce gives every rank the same two totals, bit for bit. From the same numbers every rank draws the same conclusion, so nobody has to be told to stop. In the picture, `train_epoch` and the total alternate, and all three ranks leave after the same one.

# %% tags=["solution"]
views.calls(check("10_training_template/stop_together").runs[2])

# %% [markdown] tags=["solution"]
# ### It could also be
#
# Rank 0 decides, from a `reduce`, and broadcasts the decision with the lowest loss. A decision that rests on something else, a clock or a signal, cannot be drawn from equal numbers: there, one rank must speak for all, or one vote be enough, as in `train.py`.

# %% [markdown]
# ## Port a script
#
# 30 min · hard · after [lesson 10](../notebooks/10_training_template.ipynb)
#
# This script trains in one process and goes on from its checkpoint. Make it run on many ranks, each with its share of the work, and give what one process gives.
#
# - `batch` is the batch of all ranks together, `stop_after` counts its steps.
# - The script shuffles as `DistributedSampler(data)` does: in each epoch the same order.
# - Every rank ends with the script's parameters, and returns the script's losses and error: of whole batches, and of the whole test set.
# - Rank 0 alone writes. The old script must be able to go on from your checkpoint, and you from one of its own.
#
# Checked step by step on 1 to 4 ranks, from the start and from the middle of an epoch.

# %%
import itertools

import torch
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, RandomSampler


def train(model, data, test, folder, epochs, batch, stop_after):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    order = torch.Generator()
    loader = DataLoader(data, batch, sampler=RandomSampler(data, generator=order))
    checkpoint, step, losses = folder / "checkpoint.pt", 0, []
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]

    for epoch in range(step // len(loader), epochs):
        order.manual_seed(epoch)
        for x, y in itertools.islice(loader, step % len(loader), None):
            if step == stop_after:
                break
            loss = mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            step += 1

    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
    torch.save(state, checkpoint)
    with torch.no_grad():
        x, y = test.tensors
        error = (model(x) - y).abs().mean().item()
    return losses, error


# %%
# %%exercise 10_training_template/port
import itertools

import torch
import torch.distributed as dist
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def train(model, data, test, folder, epochs, batch, stop_after):
    """Train on all ranks. Returns (losses, error): the mean loss of each step made, and the mean
    error over `test`; floats, and the same on every rank.

    model: the same on all ranks, in float64, on the CPU; in the end it has the trained parameters.
    data, test: a TensorDataset each, whole on every rank. The number of training samples and
    `batch` divide by the number of ranks; that of the test samples need not, but each rank can
    have one. The last batch of an epoch may be smaller.
    folder: a Path. If checkpoint.pt is there, it is there for every rank, and the same.
    """
    ### BEGIN SOLUTION
    rank, world_size = dist.get_rank(), dist.get_world_size()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch // world_size, sampler=sampler)
    checkpoint, step, losses = folder / "checkpoint.pt", 0, []
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
    wrapped = DDP(model)

    for epoch in range(step // len(loader), epochs):
        sampler.set_epoch(epoch)
        for x, y in itertools.islice(loader, step % len(loader), None):
            if step == stop_after:
                break
            loss = mse_loss(wrapped(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mean = loss.detach() / world_size
            dist.all_reduce(mean)
            losses.append(mean.item())
            step += 1

    if rank == 0:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
        torch.save(state, checkpoint)
    with torch.no_grad():
        x, y = (part[rank::world_size] for part in test.tensors)
        errors = (model(x) - y).abs()
        totals = torch.stack([errors.sum(), torch.ones_like(errors).sum()])
        dist.all_reduce(totals)
    return losses, (totals[0] / totals[1]).item()
    ### END SOLUTION


# %%
check("10_training_template/port")

# %% [markdown]
# <details><summary>Hint 1: go through the script line by line</summary>
#
# Copy it into the cell. Ask of each line: should every rank do this with its own part, every rank with the same, or one rank alone? Most lines need no change.
#
# </details>
#
# <details><summary>Hint 2: which lines change</summary>
#
# The sampler, what is told to it in each epoch, and the batch size. What the forward goes through. The loss that is noted. The file that is written. The samples that are tested, and their mean.
#
# </details>
#
# <details><summary>Hint 3: names, means and positions</summary>
#
# - Two names for one model: one for the forward of the training, the other for saving, loading and testing.
# - Shares of a batch are equal, so the mean of the ranks' losses is the loss of the batch. Shares of the test set are not: two totals.
# - `step` counts the same on every rank, and so does `len(loader)`, if the loader knows the rank's share.
#
# </details>

# %% [markdown] tags=["solution"]
# ### Why it works
#
# `DistributedSampler` deals samples out in turn. So the k-th parts of all ranks, `batch // world_size` samples each, are the k-th batch of one process, in any number of ranks. DDP gives the gradient of that batch. Steps, epochs and the position in an epoch are the script's, and every rank reads the same checkpoint: it knows the momentum, and the step.
#
# These are the calls of a run that goes on after step 6, and is stopped after step 11: a loss for each of five steps, and the totals of the test. DDP's own calls are not shown.

# %% tags=["solution"]
views.calls(check("10_training_template/port").runs[1])

# %% [markdown] tags=["solution"]
# ### It could also be
#
# The losses may be gathered once, after the last step: `all_gather_object` in place of a small all-reduce for each step. And every rank may test all samples: no call at all, but nobody saves time.
