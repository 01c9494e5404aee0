# %% [markdown]
# # Average gradients across ranks
#
# You will train on two ranks exactly as on one process, averaging gradients by hand, and find the mistakes that raise no error.
#
# 50 min · 2 ranks on any laptop · needs 03, 04, 05 · new terms: local gradient, parameter gap, buffer

# %% [markdown]
# ## Recall
#
# 1. `if dist.get_rank() == 0: dist.all_reduce(x)`. What happens?
# 2. Rank 0 holds 1, rank 1 holds 2, both call `dist.all_reduce(x)`. What is in `x` on each?
# 3. Four ranks all-reduce a tensor of 100 MB in a ring. How much does each rank send?
#
# <details><summary>Answers</summary>
#
# 1. Rank 0 waits for ranks that never call it.
# 2. 3 on both: the sum, in place.
# 3. 150 MB: 2 · 3/4 of the tensor.
#
# </details>

# %% [markdown]
# ## What you know already
#
# Three questions, one minute.

# %%
from ddp_lessons import questions

questions("06_gradient_averaging", before=None)  # run, put your letters in, run again

# %% [markdown]
# The line of lesson 01 that this lesson explains:

# %%
from ddp_lessons import compare, launch, show, views

show("01_why_ddp/ddp.py", light="lessons 06")

# %% [markdown]
# ## Add up, then divide
#
# Two ranks share the global batch: `x[rank::world_size]` gives each of them every second sample. The gradient that a rank computes from its part is its **local gradient**. The next model has two parameters, so its gradient can be drawn as an arrow.

# %%
show("06_gradient_averaging/arrows.py")

# %% [markdown]
# > **Guess.** One process takes all four samples. How many times as long as its gradient is the sum from `all_reduce`? Vote, discuss, vote again.

# %%
guess = None  # your number
two = launch("06_gradient_averaging/arrows.py", world_size=2)
one = launch("06_gradient_averaging/arrows.py", world_size=1)
compare(guess, two.values("sum")[0][0] / one.values("mean")[0][0])

# %%
views.gradient_arrows(two, one)

# %% [markdown]
# The mean of the local gradients is the gradient of the global batch, because the loss is a mean, the parts are equally large, and no sample's loss depends on other samples. The sum is too long by the number of ranks: with plain SGD, a learning rate N times too large.

# %% [markdown]
# ## The same training, three ways
#
# The digits of lesson 01 again, 20 steps of SGD. `one_process.py` takes each batch of 64 whole. `by_hand.py` gives each of two ranks 32 of them. Each rank starts from a seed of its own; then rank 0 sends its weights.

# %%
show(
    "06_gradient_averaging/by_hand.py",
    light=["broadcast(", "all_reduce(", "/=", "seed(rank)", "::", "s(model)"],
)

# %%
show("06_gradient_averaging/ddp.py", since="06_gradient_averaging/by_hand.py")

# %% [markdown]
# `steps` puts what the ranks recorded after each step into one tensor.

# %%
import torch


def steps(run, name):  # ranks x steps x numbers
    return torch.tensor([[record.values[name] for record in rank.records] for rank in run])


# %% [markdown]
# > **Guess.** Is any parameter, on any rank, ever more than 0.000001 away from the single process? True or False?

# %%
guess = None  # True or False
single = launch("06_gradient_averaging/one_process.py", world_size=1)
hand = launch("06_gradient_averaging/by_hand.py", world_size=2)
ddp = launch("06_gradient_averaging/ddp.py", world_size=2)
gap = (steps(hand, "parameters") - steps(single, "parameters")).abs().max()
compare(guess, gap.item() > 1e-6)

# %%
for name in ("gradient", "parameters"):
    for run in (hand, ddp):
        gap = (steps(run, name) - steps(single, name)).abs().max()
        print(f"{run.script}, {name}: equal to 0.000001 is {gap.item() < 1e-6}")

# %% [markdown]
# All agree, on every rank, at every step. (Within 0.000001, not bit by bit: the sums are taken in another order.) Equal starts and equal gradients make equal steps.

# %% [markdown]
# ## Contrast: average the loss
#
# It looks like a shortcut: one number travels.

# %%
show("06_gradient_averaging/loss_first.py", light=["x =", "all_reduce", "/=", "backward()"])

# %% [markdown]
# > **Guess.** Without averaging, the gradients are 1 and 2; averaged, 1.5. What does each rank get here? Write a list.

# %%
guess = None  # [rank 0, rank 1]
run = launch("06_gradient_averaging/loss_first.py", world_size=2)
compare(guess, run.values("gradient"))

# %% [markdown]
# Nothing is averaged. The number changes; the graph behind it still leads to the rank's own samples only. So each rank gets its local gradient, divided by 2. What that does to the training shows in the **parameter gap**: the largest difference of any parameter between two models that should be equal.

# %%
drift = launch("06_gradient_averaging/loss_averaged.py", world_size=2)
seeds = launch("06_gradient_averaging/no_broadcast.py", world_size=2)
views.parameter_gap({"own seeds": seeds, "loss averaged": drift, "gradients averaged": hand})

# %% [markdown]
# `no_broadcast.py` averages gradients but starts from two seeds. Its gap stays: averaged gradients keep equal models equal, they do not make them so.
#
# Did the loss warn anybody?

# %%
losses = [[r.values["loss"] for r in rank.records if "loss" in r.values] for rank in drift]
{"equal": losses[0] == losses[1], "falls": losses[0][-1] < losses[0][0]}

# %% [markdown]
# The loss falls, equal on both ranks. It looks slow only beside a correct run.
#
# <details><summary>Does PyTorch say something?</summary>
#
# `run[0].stderr` has one warning, about "silently incorrect behavior". A training log buries it.
#
# </details>

# %% [markdown]
# ## The sum, under two optimizers
#
# `sum.py` is `by_hand.py` without the division.
#
# > **Guess.** SGD ends elsewhere. Does Adam: is some parameter over 0.01 from where one process with Adam ends? True or False?

# %%
guess = None  # True or False
folder, names = "06_gradient_averaging", ("SGD", "Adam")
wrong = {name: launch(f"{folder}/sum.py", args=[name]) for name in names}
right = {name: launch(f"{folder}/one_process.py", 1, args=[name]) for name in names}
gap = (steps(wrong["Adam"], "parameters") - steps(right["Adam"], "parameters")).abs().max()
compare(guess, gap.item() > 0.01)

# %%
views.parameter_gap({f"sum, {name}": (wrong[name], right[name]) for name in names})

# %% [markdown]
# Adam [divides by the gradient's own size](https://docs.pytorch.org/docs/stable/generated/torch.optim.Adam.html), so a factor of 2 cancels: test an averager with SGD.

# %% [markdown]
# ## Equal parts, unequal parts, and a sum
#
# `splits.py` compares DDP with one process three times: with 3 and 3 samples, with 4 and 3, and with 3 and 3 under a loss that is a sum.
#
# > **Guess.** 4 and 3 samples, a mean loss: does DDP's gradient differ from that of the 7? True or False?

# %%
guess = None  # True or False
run = launch("06_gradient_averaging/splits.py", world_size=2)
compare(guess, run.values("unequal_parts")[0] > 1e-6)

# %%
run

# %% [markdown]
# The first two columns are the largest difference, rounded. DDP takes the mean of two means: in unequal parts, each sample of the smaller one counts more. The last column is DDP's gradient divided by that of one process. With a sum loss, the local gradients only need adding up; DDP divides all the same.

# %% [markdown]
# ## Claim check
#
# Rank 0's model starts from weight 1, rank 1's from 11. It also has a **buffer**, a tensor of the model that is not trained, like BatchNorm's running mean: 5 and 6. The losses are 1 and 3. Before `step()`, the script undoes the averaging: it sets the gradients to 1 and 2.

# %%
launch("06_gradient_averaging/claims.py", world_size=2)

# %% [markdown]
# - "Each GPU's loss is gathered on GPU 0." Wrong. `loss`: each rank keeps its own.
# - "Only gradients are communicated." Wrong. `weight`, `buffer`: rank 0's weights travel once, when DDP wraps the model, and its buffers before forward passes.
# - "`optimizer.step()` synchronises." Wrong. `gradient` is the mean before the step. `weight_after`: the step uses whatever gradient its rank has.

# %% [markdown]
# ## Break it
#
# A hook, a function that torch calls when a gradient is ready, should average it. Nothing raises. Find ranks, line and cause.

# %%
# %%ranks -n 2 -o broken
import torch
import torch.distributed as dist
from ddp_lessons.worker import process_group, record

def average(gradient):
    dist.all_reduce(gradient)
    gradient /= dist.get_world_size()

with process_group() as device:
    weight = torch.ones(1, device=device, requires_grad=True)
    weight.register_post_accumulate_grad_hook(average)
    (weight * (dist.get_rank() + 1.0)).sum().backward()
    record("after", gradient=weight.grad.item())

# %% [markdown]
# <details><summary>Ranks, line and cause</summary>
#
# Both ranks keep their local gradient. The line is `def average(gradient)`: [this hook](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_post_accumulate_grad_hook.html) gets the parameter, not its gradient. So it averages weights that are equal already.
#
# </details>

# %% [markdown]
# ## Complete it
#
# To print the loss of the global batch, average a copy of it. You are done when both ranks record 2 as `shown`, and the gradients are still 1 and 2.

# %%
# %%ranks -n 2 -o mine
import torch
import torch.distributed as dist
from ddp_lessons.worker import process_group, record

with process_group() as device:
    rank = dist.get_rank()
    weight = torch.ones(1, device=device, requires_grad=True)
    loss = (weight * (rank + 1.0)).sum() + rank  # 1 and 3
    # 1. A copy without a graph, divided by the number of ranks.
    shown = loss  # your line
    ...  # 2. your line
    loss.backward()
    record("step", shown=shown.item(), gradient=weight.grad.item())

# %% [markdown]
# <details><summary>The two lines</summary>
#
# `shown = loss.detach() / dist.get_world_size()` and `dist.all_reduce(shown)`
#
# </details>

# %% [markdown]
# ## Exercise
#
# - [Average over unequal parts](../exercises/06_gradient_averaging.ipynb) · 20 min · checked at each step against one process.
# - [Find the bug](../exercises/06_gradient_averaging.ipynb) · 8 min · checked against a run's records.

# %% [markdown]
# ## What you know now
#
# The same three questions.

# %%
questions("06_gradient_averaging", after=None)  # run, put your letters in, run again

# %% [markdown]
# ## Without scrolling
#
# 1. Your ranks' parameters are equal at every step. Can the averaging still be wrong?
# 2. Four ranks have the gradients 1, 2, 3 and 6. What does each hold after DDP's backward?
#
# <details><summary>Answers</summary>
#
# 1. Yes. With the sum, the ranks agree with one another and not with one process.
# 2. Their mean, 3.
#
# </details>

# %% [markdown]
# ## Checkpoint: lessons 04 to 06
#
# Ten minutes, without scrolling.
#
# 1. Rank 0 holds 1, rank 1 holds 2. What does each hold after `broadcast` from rank 0? After `all_gather`?
# 2. `y = dist.all_reduce(x)`. What is in `y`, and where is the sum?
# 3. Rank 1 makes one `all_reduce` too many at the start. What do later sums hold?
# 4. 8 ranks all-reduce 100 MB. How much does the busiest rank send, through rank 0 and in a ring? All ranks together?
# 5. You average the loss before the backward. What do the gradients become?
# 6. When is the mean of the ranks' gradients not the global batch's gradient?
#
# <details><summary>Answers</summary>
#
# 1. 1 on both. A list with 1 and 2 on both.
# 2. `None`; in `x`.
# 3. Tensors of different calls: calls pair by order. As long as shapes and dtypes fit, torch raises nothing.
# 4. 700 MB and 175 MB. 1,400 MB both ways.
# 5. Each rank keeps its local gradient, divided by the number of ranks.
# 6. When the parts are unequal, the loss is a sum, or the model mixes samples (BatchNorm).
#
# </details>

# %% [markdown]
# ## In your terminal
#
# ```
# .venv/bin/torchrun --nproc-per-node 2 ddp_lessons/scripts/06_gradient_averaging/arrows.py
# ```

# %% [markdown]
# ## In practice
#
# - **On NCCL.** The same scripts.
# - **Many machines.** The mean is over all ranks.
# - **Fine print.** `by_hand.py` makes one call for each parameter. DDP [collects gradients and sends them during the backward](https://docs.pytorch.org/docs/stable/notes/ddp.html): lesson 08. `op=dist.ReduceOp.AVG` adds and divides in one call; integers raise on gloo.

# %% [markdown]
# Next: [Give every rank its samples](07_distributed_sampler.ipynb)
