# %% [markdown]
# # Exercise: let gradients travel during the backward
#
# 20 min · hard · after [lesson 08](../notebooks/08_inside_ddp.ipynb)
#
# The lesson's miniature DDP stands still while a message travels. Let the backward go on meanwhile: `all_reduce(x, async_op=True)` returns a Work at once; after its `wait()` the sum is in `x`.
#
# - Every rank calls `overlap(model)` once. It returns a function `finish`.
# - The loop calls `finish()` after each backward. Then every gradient is the mean over the ranks.
# - Each gradient has one all-reduce. It starts as soon as the gradient is ready. Nobody waits before the last one has started.
# - Parameters may be frozen before the call, or take no part in a step, alike on all ranks.
#
# All ranks start alike; the training loop empties gradients. In the check a sum arrives when you wait for it, not before.

# %%
from ddp_lessons import check, views

# %%
# %%exercise 08_inside_ddp/async_hooks
import torch
import torch.distributed as dist


def overlap(model):
    """Average the gradients of a model over all ranks while its backward goes on.

    Returns finish(): no arguments, nothing returned. After it, each parameter's .grad is the mean.
    """
    ### BEGIN SOLUTION
    on_the_way = []

    def start(parameter):
        work = dist.all_reduce(parameter.grad, async_op=True)
        on_the_way.append((parameter, work))

    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(start)

    def finish():
        for parameter, work in on_the_way:
            work.wait()
            parameter.grad /= dist.get_world_size()
        on_the_way.clear()

    return finish
    ### END SOLUTION


# %%
check("08_inside_ddp/async_hooks")

# %% [markdown]
# <details><summary>Hint 1: a call that is under way</summary>
#
# Between the call and the return of `wait()`, `x` belongs to the network: leave it alone. Each Work is for one tensor, so note which.
#
# </details>
#
# <details><summary>Hint 2: two halves</summary>
#
# The lesson's hook does three things: start, wait, divide. Which of them must happen in the hook, and which can happen later?
#
# </details>
#
# <details><summary>Hint 3: the outline</summary>
#
# A list that the hook and `finish` share. The hook starts one all-reduce and notes the parameter with its Work. `finish` goes through the list, and leaves it empty for the next step.
#
# </details>

# %% [markdown] tags=["solution"]
# ## Why it works
#
# The hook only starts. So the backward goes on with the next layer while the sum travels. `finish` does what has to wait: wait, then divide. What is divided before its wait is lost when the sum arrives, or gets mixed with it.
#
# The pairs are made in the hook. So there is nothing to wait for where a parameter is frozen or took no part. All ranks have the same backward, so their hooks run in the same order, and the calls pair up.
#
# Below is what the check saw with three layers: in each of three steps, three calls start before the first wait. Dashes mean that a call is under way and its rank goes on.

# %% tags=["solution"]
run = check("08_inside_ddp/async_hooks").runs[2]
views.calls(run)

# %% [markdown] tags=["solution"]
# The order on rank 0, in words:

# %% tags=["solution"]
moments = [(call.called, f"call {call.seq}") for call in run[0].calls]
moments += [(call.waited, f"wait {call.seq}") for call in run[0].calls]
print(*(what for _, what in sorted(moments)), sep=", ")

# %% [markdown] tags=["solution"]
# ## It could also be
#
# `parameter.grad /= dist.get_world_size()` in the hook, before the call. Then `finish` only waits: the sum of such parts is the mean. DDP divides first, too ([source](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/csrc/distributed/c10d/reducer.cpp), `mark_variable_ready_dense`). It saves messages besides: many gradients in one bucket.
