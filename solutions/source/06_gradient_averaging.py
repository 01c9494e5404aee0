# %% [markdown]
# # Exercises: gradients of the whole batch
#
# Two exercises: average where the parts are unequal, and find out from its records what is wrong with a run.

# %%
from ddp_lessons import check, launch, show, views

# %% [markdown]
# ## Average over unequal parts
#
# 20 min · moderate · after [lesson 06](../notebooks/06_gradient_averaging.ipynb)
#
# A last batch rarely divides by the number of ranks, and a rank may get nothing. The mean of the ranks' gradients is then not the gradient of the global batch. Write an averaging that gives it.
#
# - Each rank has called `backward()` on the mean loss of its own `count` samples.
# - Counts differ between ranks and from step to step. With 0 samples nobody called `backward()`: every `.grad` is `None`.
# - After `average_gradients(model, count)`, `.grad` is the gradient of the mean loss over all ranks' samples, on every rank, with samples or without.
# - Parameters stay as they are. What the function returns is ignored.
#
# Checked at each step of short trainings on 1 to 4 ranks.

# %%
# %%exercise 06_gradient_averaging/weighted
import torch
import torch.distributed as dist


def average_gradients(model, count):
    """Put the gradient of all ranks' samples together into every parameter's .grad.

    count: this rank's number of samples, an int, on some ranks 0 but not on all.
    All parameters are float32, and all of them are trained.
    """
    ### BEGIN SOLUTION
    total = torch.tensor(count, device=next(model.parameters()).device)
    dist.all_reduce(total)
    for parameter in model.parameters():
        if parameter.grad is None:  # nothing to add, but the others need the call
            parameter.grad = torch.zeros_like(parameter)
        parameter.grad *= count / total
        dist.all_reduce(parameter.grad)
    ### END SOLUTION

# %%
check("06_gradient_averaging/weighted")

# %% [markdown]
# <details><summary>Hint 1: who weighs how much?</summary>
#
# Three samples on rank 0, one on rank 1. Write the mean loss of the four as a sum over ranks. By what is each rank's mean loss multiplied?
#
# </details>
#
# <details><summary>Hint 2: what must travel?</summary>
#
# A rank knows its own count only. One more number has to be known everywhere before anybody can weigh.
#
# </details>
#
# <details><summary>Hint 3: nothing to average?</summary>
#
# Every rank makes the same calls, with tensors of the same shape. What can a rank with 0 samples pass in, so that the sum does not change? And where must the result go on that rank?
#
# </details>

# %% [markdown] tags=["solution"]
# ### Why it works
#
# The mean loss of all T samples is the sum of the ranks' mean losses, each times `count / T`. A gradient follows its loss, so the same weights hold for the gradients. They add up to 1: nobody divides afterwards. With equal counts each weight is 1 / N, and this is the mean of lesson 06.
#
# A rank without samples has weight 0. It still makes every call, with zeros, and ends with the same gradient. Rank 2 here has no samples at any of the three steps:

# %% tags=["solution"]
views.calls(check("06_gradient_averaging/weighted").runs[2])

# %% [markdown] tags=["solution"]
# ### It could also be
#
# One call in place of one for each parameter and one for the count: all gradients times `count` in a single flat tensor, `count` as its last entry. After the all-reduce, divide by the last entry.

# %% [markdown]
# ## Find the bug
#
# 8 min · moderate · after [lesson 06](../notebooks/06_gradient_averaging.ipynb)
#
# A training on three ranks ends without an error, and the models differ. One step went wrong, on one rank.

# %%
run = launch("06_gradient_averaging/broken.py", world_size=3)
views.parameter_gap({"broken.py": run})


# %%
def look(step):
    """What each rank recorded in a step: its loss, its local gradient, the one it used."""
    for rank in run:
        found = rank.records[step - 1].values
        local, used = ([round(x, 2) + 0.0 for x in found[name]] for name in ("local", "gradient"))
        print(f"rank {rank.rank}: loss {found['loss']:.2f}, local {local}, used {used}")


look(step=1)

# %% [markdown]
# `finding()` returns the bug, the rank and the step. What did that rank use as its gradient?
#
# - `"sum"`: the sum of the local gradients
# - `"local"`: its own
# - `"twice"`: the mean, divided by the number of ranks again
# - `"old"`: its gradient of the step before
# - `"weights"`: the mean, but something else changed its weights
#
# Then mend `average_gradients(model)`: the mean on every rank at every step, still in one all-reduce.

# %%
show("06_gradient_averaging/broken.py")

# %%
# %%exercise 06_gradient_averaging/find_the_bug
import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def finding():
    """The bug's name, the rank and the step, as the records number them."""
    ### BEGIN SOLUTION
    return "sum", 1, 8
    ### END SOLUTION


def average_gradients(model):
    """Replace every parameter's .grad by its mean over all ranks, in one all_reduce."""
    ### BEGIN SOLUTION
    gradients = [parameter.grad for parameter in model.parameters()]
    flat = parameters_to_vector(gradients)
    dist.all_reduce(flat)
    vector_to_parameters(flat / dist.get_world_size(), gradients)
    ### END SOLUTION

# %%
check("06_gradient_averaging/find_the_bug")

# %% [markdown]
# <details><summary>Hint 1: which step?</summary>
#
# Equal models that make equal steps stay equal. The picture shows after which step they no longer are. `look()` at that step.
#
# </details>
#
# <details><summary>Hint 2: which rank?</summary>
#
# Not by the loss: each rank's own samples make it. Work the mean of the three local gradients out by hand, one number is enough. Who used something else?
#
# </details>
#
# <details><summary>Hint 3: from the record to the line</summary>
#
# Divide what that rank used by what the others used. Then look at its local gradient in that step, and find the line where such a gradient makes a difference.
#
# </details>

# %% [markdown] tags=["solution"]
# ### Why it works

# %% tags=["solution"]
look(step=8)

# %% [markdown] tags=["solution"]
# The first numbers of the local gradients give a mean of (-3.84 + 0 + 0) / 3 = -1.28. Ranks 0 and 2 used it; rank 1 used three times as much, the sum. Rank 0 has the highest loss in this step, and did nothing wrong.
#
# Rank 1's samples had inputs of zeros only, so its local gradient was zero. `flat.any()` asked for that before the all-reduce, and rank 1 did not divide. Zeros need no division, somebody thought; but after the all-reduce they are no zeros any more.
#
# On one process the script has no such step:

# %% tags=["solution"]
one = launch("06_gradient_averaging/broken.py", world_size=1)
views.parameter_gap({"between the ranks": run, "to one process": (run, one)})

# %% [markdown] tags=["solution"]
# The gap between the ranks stays as it is, as after different starts in lesson 06. The gap to one process does not: rank 1's local gradients now come from other weights, and go into everybody's mean. So the mend does not repair a model that was trained with the bug.
#
# ### It could also be
#
# `dist.all_reduce(flat, op=dist.ReduceOp.AVG)`: it divides on every rank, and there is no line to get wrong.
