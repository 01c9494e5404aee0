# %% [markdown]
# # Exercise: all-gather from broadcasts
#
# 10 min · moderate · after [lesson 04](../notebooks/04_collectives.ipynb)
#
# A backend may lack a collective that you need. Often it can be made from others. Make an all-gather from broadcasts.
#
# - Every rank calls `all_gather(x)` with its own tensor `x`. All have the same shape and dtype.
# - It returns a list of new tensors: entry r is what rank r's `x` holds, on every rank.
# - Each rank makes one broadcast for each rank, and no other call.
# - `x` is unchanged afterwards.
#
# Fill in the cell, run it, then run the check.

# %%
from ddp_lessons import check, views

# %%
# %%exercise 04_collectives/all_gather
import torch
import torch.distributed as dist


def all_gather(x):
    """Return a list with every rank's x, in rank order, the same on every rank.

    x: any shape and dtype, the same on all ranks. It stays as it is. The list holds copies: what
    later happens to x, or in a later call, changes nothing in it.
    """
    ### BEGIN SOLUTION
    parts = []
    for source in range(dist.get_world_size()):
        part = x.clone()
        dist.broadcast(part, src=source)
        parts.append(part)
    return parts
    ### END SOLUTION


# %%
check("04_collectives/all_gather")

# %% [markdown]
# <details><summary>Hint 1: who sends?</summary>
#
# A broadcast gives every rank the tensor of one rank. How many of them do you need, and with which `src`?
#
# </details>
#
# <details><summary>Hint 2: where does it go?</summary>
#
# A broadcast writes into the tensor that it is given. On the ranks that receive, that must be a tensor which nobody needs any more.
#
# </details>
#
# <details><summary>Hint 3: the outline</summary>
#
# A loop over all ranks. In each turn: a new tensor, a broadcast into it, keep it.
#
# </details>

# %% [markdown] tags=["solution"]
# ## Why it works
#
# All ranks walk through the same loop, so their calls pair up: the first broadcast is rank 0's, the second rank 1's. In its own turn a rank sends a copy of `x`; in the others it receives into one. Each turn has a tensor of its own, so nothing is written over, neither `x` nor an earlier part.

# %% tags=["solution"]
views.calls(check("04_collectives/all_gather").runs[2])

# %% [markdown] tags=["solution"]
# ## It could also be
#
# `part = x.clone() if source == rank else torch.empty_like(x)`: a rank copies its `x` once, not in every turn. Or N broadcasts with `async_op=True`. Each then only starts, and returns an object whose `wait()` you call at the end. So all of them can be under way at once.
