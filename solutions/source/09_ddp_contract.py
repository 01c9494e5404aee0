# %% [markdown]
# # Exercise: accumulate gradients, send them once
#
# 10 min · moderate · after [lesson 09](../notebooks/09_ddp_contract.ipynb)
#
# A large batch that does not fit into memory is passed in micro-batches. Sending each one's gradients would waste messages.
#
# - Every rank calls `train(model, optimizer, batches, k)`. `model` is wrapped in DDP. `batches` is this rank's list of micro-batches.
# - The loss of a micro-batch is `model(batch).mean()`.
# - After each k micro-batches comes one step, with the mean gradient over these micro-batches and all ranks. If fewer are left at the end, they get a step of their own.
# - Each step makes one all-reduce. Under `with model.no_sync():` DDP makes none.
# - Each micro-batch goes through the model once, alone, and has its own backward.
# - `train` returns the number of steps.
#
# Gradients are empty at the start.

# %%
from ddp_lessons import check, views

# %%
# %%exercise 09_ddp_contract/accumulate
import torch


def train(model, optimizer, batches, k):
    """Go through the micro-batches once, with a step after each k of them and after the rest.

    All ranks have the same number of micro-batches, of one size. Returns the number of steps.
    """
    ### BEGIN SOLUTION
    steps = 0
    for start in range(0, len(batches), k):
        group = batches[start : start + k]
        with model.no_sync():
            for batch in group[:-1]:
                loss = model(batch).mean() / len(group)
                loss.backward()
        loss = model(group[-1]).mean() / len(group)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        steps += 1
    return steps
    ### END SOLUTION


# %%
check("09_ddp_contract/accumulate")

# %% [markdown]
# <details><summary>Hint 1: one group</summary>
#
# Begin with one group of k. Which of its backwards must send? Which must not?
#
# </details>
#
# <details><summary>Hint 2: the mean</summary>
#
# `backward()` adds to `.grad`. What do you get from k losses that are each the mean over one micro-batch, and what do you want? The rest may have fewer than k.
#
# </details>
#
# <details><summary>Hint 3: the outline</summary>
#
# An outer loop over groups: slices of `batches`. In it, forward and backward of all but the last, without averaging; forward and backward of the last, with it; the step; empty gradients.
#
# </details>

# %% [markdown] tags=["solution"]
# ## Why it works
#
# Under `no_sync` each backward adds to this rank's own `.grad`. The backward of the last micro-batch adds too, and then DDP averages all that `.grad` holds. All gradients of this model are in one bucket, so one all-reduce does for the group. Dividing each loss by `len(group)`, and not by `k`, makes the sum a mean in the last, shorter group too.
#
# DDP's own calls are not in `run.calls`. So the check gives DDP a communication hook that makes an all-reduce which is. Below are 7 micro-batches with k = 3: three steps, three all-reduces, each at the line of the last backward.

# %% tags=["solution"]
run = check("09_ddp_contract/accumulate").runs[2]
views.calls(run)

# %% [markdown] tags=["solution"]
# ## It could also be
#
# One loop, with `model.require_backward_grad_sync = number == len(group)` before each forward. This is the flag that `no_sync` lowers.
