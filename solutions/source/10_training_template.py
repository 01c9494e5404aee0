# %% [markdown]
# # Exercises: stop together, and port a script
#
# Two exercises: an early stop that all ranks decide, and a script for one process that becomes one for many.

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
