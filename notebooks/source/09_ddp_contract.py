# %% [markdown]
# # Know what DDP does not do
#
# You will walk into ten traps that DDP leaves open, see what each does to the ranks, and mend it.
#
# 45 min · 2 ranks on any laptop · needs 06, 07, 08 · new terms: wrapper, inner model, unused parameter

# %% [markdown]
# ## Recall
#
# 1. Forward, backward, step: in which of them does DDP average the gradients?
# 2. When is a bucket sent?
# 3. In every epoch the shuffled order is the same. Which call is missing?
#
# <details><summary>Answers</summary>
#
# 1. In the backward.
# 2. When every gradient in it is ready, and in those before it.
# 3. `sampler.set_epoch(epoch)`.
#
# </details>

# %% [markdown]
# ## What you know already
#
# Three questions, one minute.

# %%
from ddp_lessons import questions

questions("09_ddp_contract", before=None)  # run, put your letters in, run again

# %% [markdown]
# The lines of lesson 01 that this lesson explains: one goes through DDP, the other bypasses it.

# %%
from ddp_lessons import WorkerError, compare, launch, show, views

show("01_why_ddp/ddp.py", light=["model(inputs", "model.module("])

# %% [markdown]
# ## What DDP does, and when
#
# `DDP(model)` returns the **wrapper**. Your model is the **inner model**, `wrapper.module`.
#
# | moment | what DDP does |
# |---|---|
# | wrapping | notes which parameters require a gradient; sends rank 0's parameters and buffers to all |
# | forward of the wrapper | sends rank 0's buffers to all, unless the wrapper's last forward was under `no_grad` or `no_sync` (trap 6); after the first backward, also the order of the buckets; prepares the averaging |
# | backward | averages the gradients of the noted parameters |
#
# ([Source](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/nn/parallel/distributed.py).) It never compares the weights. What goes wrong outside this table stays wrong.

# %% [markdown]
# ## Trap 1. Past the wrapper
#
# Call the inner model.

# %%
show("09_ddp_contract/through_module.py", light=["x =", "forward = ", "forward(x)"])

# %% [markdown]
# > **Guess.** Learning rate 0.1; both weights start at -0.0075. Through the wrapper, both are at -0.4575 after 3 steps. Where are they without it? Write a list, four decimals.

# %%
guess = None  # [rank 0, rank 1]
past = launch("09_ddp_contract/through_module.py", world_size=2)
compare(guess, [round(rank.records[2].values["parameters"][0], 4) for rank in past])

# %% [markdown]
# Each rank trained alone: the wrapper's forward did not run, so DDP prepared no averaging.

# %% [markdown]
# ## Contrast: five traps, five mends
#
# | | script | trap | mend |
# |---|---|---|---|
# | 1 | `through_module` | `model.module(x)` | `model(x)` |
# | 2 | `unfrozen` | a weight is unfrozen after wrapping | wrap anew, and give the optimizer the weight |
# | 3 | `loaded` | rank 0 alone loads a checkpoint after wrapping | every rank does; or rank 0, before wrapping |
# | 4 | `pushed` | in step 2, rank 1 adds 1 to its weight | every rank does |
# | 5 | `divided` | the averaged gradients are divided by N | DDP has divided: leave them |
#
# `args=["mended"]` chooses the mend.
#
# > **Guess.** In how many of the five do the ranks end with different weights? Vote, discuss, vote again.


# %%
def each(*args):
    return {name: launch(f"09_ddp_contract/{name}.py", args=args) for name in five}


five = ["through_module", "unfrozen", "loaded", "pushed", "divided"]
guess = None  # your number
traps, mends = each(), each("mended")
compare(guess, sum(a != b for a, b in (run.values("parameters") for run in traps.values())))

# %%
one = launch("09_ddp_contract/divided.py", world_size=1)
views.gap_panels(traps, mends, to={"divided": one})

# %% [markdown]
# Between the ranks, a gap that grows means: gradients are not averaged. A gap that stays means: weights were changed, and equal steps keep them apart. `divided` has no gap between ranks: it shows only against one process.
#
# <details><summary>A checkpoint has names, too</summary>
#
# The wrapper's `state_dict()` puts `module.` before each name, which a bare model does not know. With `strict=False` it loads nothing (next cell). Save `model.module.state_dict()`.
#
# </details>

# %%
import torch

saved = dict.fromkeys(traps["loaded"].values("names")[0], torch.ones(1, 1))
torch.nn.Linear(1, 1, bias=False).load_state_dict(saved, strict=False)

# %% [markdown]
# ## Trap 6. no_sync: around what?
#
# `with wrapper.no_sync():` leaves the averaging out on purpose. A communication hook (lesson 08) counts the all-reduces. Local gradients: 1 and 2.

# %%
show("09_ddp_contract/no_sync.py", light=["calls.append", "with forward", "with back", "sync = "])

# %% [markdown]
# > **Guess.** `no_sync` around the backward only. What is the gradient on rank 0?

# %%
guess = None  # your number
run = launch("09_ddp_contract/no_sync.py", world_size=2)
compare(guess, run[0].records[2].values["gradient"])

# %%
for first, second in zip(run[0].records, run[1].records, strict=True):
    gradients = first.values["gradient"], second.values["gradient"]
    print(f"{first.name:20}", gradients, "all-reduces:", first.values["all_reduces"])
held = launch("09_ddp_contract/held.py", world_size=2)
print("held.py:", held.values("local"), "then", held.values("averaged"))

# %% [markdown]
# The forward decides: it reads a flag, and prepares the averaging or not. So keep the forward inside `no_sync`, which lowers the flag. Raised by hand between forward and backward (`flag raised between`), it comes too late: the ranks keep different gradients.
#
# `held.py`: a step under `no_sync`, then one without. The second backward averages all that `.grad` holds.

# %% [markdown]
# ## Trap 7. A parameter that nobody used
#
# A parameter that has no part in the loss is an **unused parameter**. It gets no gradient, so its bucket is never complete. In the first step that is the only bucket (lesson 08).

# %%
show("09_ddp_contract/unused.py", light=["return", "DDP(inner", "range(", "backward()"])

# %% [markdown]
# > **Guess.** The forward uses one of two layers. In which step does the error come?

# %%
guess = None  # a step
try:
    launch("09_ddp_contract/unused.py", world_size=2)
except WorkerError as error:
    broken = error.run
compare(guess, len(broken[0].records) + 1)

# %%
print("gradients in step 1:", broken.values("gradient"))
try:
    launch("09_ddp_contract/unused.py", env={"TORCH_DISTRIBUTED_DEBUG": "INFO"})
except WorkerError as error:
    named = error.run
for run in (broken, named):
    print([line for line in run[0].failure.message.splitlines() if line.startswith("Param")])

# %% [markdown]
# In step 1 nothing was averaged, silently. The next forward finds the last backward unfinished. By default the error has indices; with `TORCH_DISTRIBUTED_DEBUG=INFO`, names.
#
# Mend: remove the parameter, or `find_unused_parameters=True`.
#
# > **Guess.** Both layers are used: one all-reduce a step. How many with `find_unused_parameters=True`?

# %%
guess = None  # your number
for script in ("unused", "unfrozen"):
    found = launch(f"09_ddp_contract/{script}.py", args=["find"])
    print(f"{script}.py, gradients:", found.values("gradient"))
both = launch("09_ddp_contract/unused.py", args=["all", "find"])
compare(guess, both.values("all_reduces")[0])

# %% [markdown]
# `find_unused_parameters` costs a walk through the graph, and an all-reduce in which the ranks say what they used ([source](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/csrc/distributed/c10d/reducer.cpp), `all_reduce_local_used_map`). It cures `unused.py`, not `unfrozen.py`: that weight was not noted, so each rank keeps its local gradient.
#
# Used on rank 0 only: without `find_unused_parameters`, rank 0 waits in its backward for the others; with it, the others' gradients count as 0.

# %% [markdown]
# ## Trap 8. Whose running mean?
#
# BatchNorm's running mean is a buffer. Each rank updates it from its own batch: new = 0.9 · old + 0.1 · mean of the batch. The means are 1 on rank 0 and -0.25 on rank 1. After step 1 the ranks hold 0.1 and -0.025.

# %%
show("09_ddp_contract/buffers.py", light=["x =", "backward()", "mended:", "all_reduce", "/="])

# %% [markdown]
# > **Guess.** What does rank 1 hold after step 2?

# %%
guess = None  # your number
own = launch("09_ddp_contract/buffers.py", world_size=2)
averaged = launch("09_ddp_contract/buffers.py", world_size=2, args=["mended"])
whole = launch("09_ddp_contract/buffers.py", world_size=1)
print("averaged, and one process:", averaged.values("running_mean"), whole.values("running_mean"))
compare(guess, own.values("running_mean")[1])

# %% [markdown]
# Rank 0's buffers count. Step 2 began with 0.1 on both, so rank 1's first batch is lost. Rank 0's 0.19, from its own batches only, goes into the checkpoint.

# %% [markdown]
# ## Break it: who waits? Traps 9 and 10
#
# Rank 0 evaluates alone. Then rank 0 has 5 batches, rank 1 has 6. From each report, name ranks, lines and cause.

# %%
show("09_ddp_contract/evaluate.py", light=["rank() == 0", "output =", "barrier"])

# %% tags=["raises-exception"]
launch("09_ddp_contract/evaluate.py", device="cpu", timeout=4)

# %% tags=["raises-exception"]
launch("09_ddp_contract/uneven.py", device="cpu", timeout=4)

# %% [markdown]
# <details><summary>Ranks, lines and cause</summary>
#
# - Rank 0, line 23, waits in the wrapper's forward to send its buffers. Rank 1 waits in the barrier, line 24. It does not always wait: a forward that follows one under `no_grad` sends no buffers. Mend: `model.module(x)`.
# - After 5 steps, rank 0 waits in the barrier, line 30. Rank 1 waits in its sixth backward, line 28. Mend: `with Join([model]):` around the loop. A rank that is done [takes part with zeros](https://docs.pytorch.org/docs/stable/distributed.algorithms.join.html).
#
# </details>

# %%
for script in ("evaluate", "uneven"):
    mended = launch(f"09_ddp_contract/{script}.py", args=["mended"])
    print(script, mended.ok)

# %% [markdown]
# ## Complete it
#
# Check the gap between ranks in your own training. Two lines are missing. You are done when both ranks record a gap of 1.

# %%
# %%ranks -n 2
import torch
import torch.distributed as dist
from ddp_lessons.worker import process_group, record

with process_group() as device:
    weights = torch.tensor([5.0, 2.0 + dist.get_rank()], device=device)
    highest, lowest = weights.clone(), weights.clone()
    # 1. The highest value that any rank has, for each weight.
    ...  # your line
    # 2. The lowest.
    ...  # your line
    record("check", gap=(highest - lowest).max())

# %% [markdown]
# <details><summary>The two lines</summary>
#
# `dist.all_reduce(highest, op=dist.ReduceOp.MAX)` and `dist.all_reduce(lowest, op=dist.ReduceOp.MIN)`
#
# </details>

# %% [markdown]
# ## Exercise
#
# [Accumulate gradients, send them once](../exercises/09_ddp_contract.ipynb) · 10 min · checked on real ranks: steps, gradients, all-reduces.

# %% [markdown]
# ## What you know now
#
# The same three questions.

# %%
questions("09_ddp_contract", after=None)  # run, put your letters in, run again

# %% [markdown]
# ## Without scrolling
#
# 1. The gap between the ranks is 0.2 after step 1 and stays there. What kind of mistake?
# 2. Forward under `no_sync`, backward outside it. What does each rank's gradient hold?
#
# <details><summary>Answers</summary>
#
# 1. Somebody changed weights on one rank. Gradients are averaged.
# 2. Its local gradient.
#
# </details>

# %% [markdown]
# ## Checkpoint: lessons 07 to 09
#
# Ten minutes. Write, then unfold.
#
# 1. 10 test samples, 4 ranks, `DistributedSampler`. How many are evaluated?
# 2. 4 ranks, 10,000 samples, `batch_size=25`. How large is the global batch, and how many steps make an epoch?
# 3. Why can one bucket for the whole model not travel during the backward?
# 4. Rank 1 builds its model from another seed. What are its weights after wrapping? It then loads other weights. What are they a step later?
# 5. 4 ranks, local gradients 1, 2, 3, 6. The loop divides by 4 after the backward. What does each rank step with?
#
# <details><summary>Answers</summary>
#
# 1. 12: two of them twice.
# 2. 100; 100.
# 3. It is complete only when the backward ends.
# 4. Rank 0's. The loaded ones, changed by the common step; they stay apart from rank 0's.
# 5. 0.75 instead of 3.
#
# </details>

# %% [markdown]
# ## In your terminal
#
# ```
# .venv/bin/torchrun --nproc-per-node 2 ddp_lessons/scripts/09_ddp_contract/no_sync.py
# ```

# %% [markdown]
# ## In practice
#
# - **On NCCL.** The same rules. The reports under *Break it* ask for the CPU: NCCL's barrier is an all-reduce (lesson 03), and might pair with the wrong call.
# - **Many machines.** Run the *Complete it* check occasionally.
# - **Fine print.** `buffers.py` averages means only: the mean of the ranks' variances is not the variance of all samples.

# %% [markdown]
# Next: [Train so that a kill costs nothing](10_training_template.ipynb)
