# %% [markdown]
# # Look inside DDP
#
# You will build a miniature DDP that trains exactly like torch's, see which gradients travel together and when, and find the part of the travelling that nothing hides.
#
# 40 min · 2 ranks on any laptop · needs 04, 06 · new terms: bucket, communication hook, overlap, exposed

# %% [markdown]
# ## Recall
#
# 1. Two ranks with the local gradients 1 and 2 use DDP. What does each hold after the backward?
# 2. Eight ranks all-reduce one number in a ring. Why is that slow?
# 3. Which numbers of a model does DDP send, apart from gradients?
#
# <details><summary>Answers</summary>
#
# 1. 1.5.
# 2. A message has a price even when it is nearly empty, and in a ring many wait for one another.
# 3. Rank 0's parameters once, when it wraps the model, and its buffers before forward passes.
#
# </details>

# %% [markdown]
# ## What you know already
#
# Three questions, one minute.

# %%
from ddp_lessons import questions

questions("08_inside_ddp", before=None)  # run, put your letters in, run again

# %% [markdown]
# The line of lesson 01 that this lesson opens:

# %%
from ddp_lessons import compare, launch, show, views

show("01_why_ddp/ddp.py", light="and 08")

# %% [markdown]
# ## One step, opened
#
# A step with DDP looks like a step on one GPU. Where do the ranks talk? `run.calls` cannot say: these calls are made inside torch. But torch's profiler sees them. `trace()` records them, and the spans of time that the script names.

# %%
show("08_inside_ddp/one_step.py", light=["trace()", "span("])

# %% [markdown]
# > **Guess.** In which of the four spans do the ranks send nothing?

# %%
guess = None  # "wrap", "forward", "backward" or "step"
run = launch("08_inside_ddp/one_step.py", world_size=2, device="cpu")
events = [record.values for record in run[0].records if record.name == "event"]
silent = {"wrap", "forward", "backward", "step"} - {event["during"] for event in events}
compare(guess, *silent)

# %%
[(event["during"], event["event"].partition(":")[2], event["numbers"]) for event in events]

# %% [markdown]
# Each row: in which span, which collective, of how many numbers. All 38 gradients travel in the backward, in one all-reduce. `optimizer.step()` sends nothing: each rank takes the step that its own gradients give.
#
# <details><summary>What travels when DDP wraps the model?</summary>
#
# How many parameter tensors each rank has (1 number), rank 0's shapes and strides (16), then the values: 38 parameters and 8 numbers of BatchNorm together, and its counter, an integer, alone. A rank whose shapes differ from rank 0's raises ([source](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/csrc/distributed/c10d/reducer.cpp), `verify_params_across_processes`).
#
# </details>

# %% [markdown]
# ## A miniature DDP, in three parts
#
# What is the least that does the same? Part 1: average in the backward. The hook of lesson 06, on every parameter: torch calls it as soon as the gradient is ready.

# %%
show("08_inside_ddp/mini_hooks.py", light=["all_reduce(", "/=", "hook(", "seed(rank)"])

# %% [markdown]
# Part 2: all ranks start from rank 0's model.

# %%
show("08_inside_ddp/mini_start.py", light=["state_dict", "broadcast("])

# %% [markdown]
# Part 3: each forward begins with rank 0's buffers. `by_torch.py` is the same training with torch's DDP.

# %%
show("08_inside_ddp/mini.py", light=["in self.module.buffers", "broadcast(buffer"])

# %% [markdown]
# > **Guess.** After how many parts are the *parameters* equal to torch's, on both ranks and at every step? Vote, discuss, vote again.


# %%
def equal(run, name):  # to torch's, at every step, on both ranks
    ours, torchs = ([r.values[name] for r in one.records] for one in (run, theirs))
    pairs = zip(sum(ours, []), sum(torchs, []), strict=True)
    return all(abs(a - b) < 1e-6 for a, b in pairs)


# %%
guess = None  # 1, 2 or 3
names = "mini_hooks", "mini_start", "mini", "by_torch"
*parts, theirs = [launch(f"08_inside_ddp/{name}.py", world_size=2) for name in names]
compare(guess, 1 + [equal(run, "parameters") for run in parts].index(True))

# %%
for run in parts:
    print(run.script, {n: equal(run, n) for n in ("gradients", "parameters", "buffers")})

# %% [markdown]
# Equal starts and equal gradients make equal steps. Buffers have no gradient: BatchNorm works them out from each rank's own samples. Which ones count? DDP says: rank 0's.
#
# The miniature is right, and slow. It sends a message for each parameter, and the backward waits until it has arrived.

# %% [markdown]
# ## Which gradients travel together
#
# So DDP copies gradients into a **bucket**, one flat tensor, and sends it when it is complete (all of its gradients are ready) and those before it have gone. From step 2 on, a bucket closes when it has reached `bucket_cap_mb`. A **communication hook** is a function that DDP calls with each complete bucket, in place of its own all-reduce. The second parameter must be called `bucket`. This one makes a note, then calls DDP's own.

# %%
show(
    "08_inside_ddp/buckets.py",
    light=["defined first", "def note", "two_layers =", "comm_hook(step"],
)

# %% [markdown]
# > **Guess.** Four layers, and a bucket has room for two. How many all-reduces does the first step make?

# %%
guess = None  # your number
run = launch("08_inside_ddp/buckets.py", world_size=2)
noted = [record.values for record in run[0].records]
compare(guess, sum(bucket["step"] == 1 for bucket in noted))

# %%
[(bucket["step"], bucket["layers"]) for bucket in noted]

# %% [markdown]
# In the first step DDP does not know in which order the gradients come, so it takes one bucket (for each dtype) and waits for all. From the second step on it fills buckets in the order of the backward. `last` was defined first, but its gradient comes first.
#
# <details><summary>Whose backward?</summary>
#
# Rank 0's. It tells the others, once, before the second step ([source](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/csrc/distributed/c10d/reducer.cpp), `sync_bucket_indices`). All must agree: calls pair by order. With `find_unused_parameters=True` (and no `static_graph=True`) nothing is rebuilt: buckets follow the definitions, backwards, from the start.
#
# </details>

# %% [markdown]
# ## Contrast: one bucket, many buckets
#
# While one bucket travels, the backward can go on with the next layers: they **overlap**. Communication during which a rank has nothing left to compute is **exposed**. That part makes the step longer.
#
# Between two processes on one computer, gradients travel too fast to see. So the next hook adds a delay and lets buckets through one at a time, like a slow network.

# %%
show(
    "08_inside_ddp/overlap.py",
    light=["def slow", "at a time", "delay =", "sleep", "submit", '"gradient"'],
)

# %% [markdown]
# > **Guess.** Five equal layers. First all in one bucket, then a bucket for each layer. Which has an exposed part?

# %%
guess = None  # "one", "many" or "both"
caps = {"one": "25", "many": "4"}  # MiB
runs = {
    name: launch("08_inside_ddp/overlap.py", world_size=2, args=[cap], device="cpu")
    for name, cap in caps.items()
}


# %%
def last(run, name):  # when the last such span of rank 0 ended
    found = [r.values for r in run[0].records if r.name == "span"]
    return max(span["times"][1] for span in found if span["span"] == name)


late = [name for name in runs if last(runs[name], "all-reduce") > last(runs[name], "gradient")]
compare(guess, "both" if len(late) == 2 else late[0])

# %%
views.timeline({"One bucket": runs["one"], "A bucket for each layer": runs["many"]})

# %% [markdown]
# Compare the hatched parts. The bars above vary with the machine's load.
#
# The last bucket is complete only when the last gradient is ready, and then nothing is left to compute. So some part is always exposed: with one bucket all of it, with many at least the last.
#
# <details><summary>Then why not a bucket for each parameter?</summary>
#
# Each message has its price. DDP's default is 25 MiB, and 1 MiB for the first bucket, so that the first message starts early ([source](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/nn/parallel/distributed.py), `_BucketCapacityConfig`).
#
# </details>

# %% [markdown]
# ## Gallery: communication hooks
#
# <details><summary>Hooks that come with torch</summary>
#
# | hook | what travels |
# |---|---|
# | `allreduce_hook` | what DDP sends without a hook |
# | `fp16_compress_hook`, `bf16_compress_hook` | half as many bytes, in a coarser type |
# | `powerSGD_hook` | after plain first steps, two thin matrices for a large one; it keeps what got lost for the next step |
# | `post_localSGD_hook` | averages over all ranks in the first steps, then only within sub-groups |
# | `noop_hook` | nothing: to measure what communication costs |
#
# A hook replaces DDP's averaging, the division too. All but the first of these change the gradients ([documentation](https://docs.pytorch.org/docs/stable/ddp_comm_hooks.html)). `bf16_compress_hook` needs NCCL or XCCL.
#
# </details>

# %% [markdown]
# ## Break it
#
# From the report, name rank, line and cause.

# %% tags=["raises-exception"]
launch("08_inside_ddp/shapes.py", world_size=2)

# %% [markdown]
# <details><summary>Rank, line and cause</summary>
#
# Rank 1, line 15, where DDP wraps the model: its layer has 3 outputs, rank 0's has 2. A class that occurs only in rank 1's part of the data can do that, if each rank counts its own classes.
#
# </details>

# %% [markdown]
# ## Complete it
#
# The first layer is already trained and must stay as it is. Give each of the others a bucket of its own. Two lines are missing. You are done when both ranks record three buckets of 256 bytes.

# %%
# %%ranks -n 2 -o mine
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from ddp_lessons.worker import process_group, record

with process_group() as device:
    layers = [nn.Linear(8, 8, bias=False) for _ in range(4)]  # 8 * 8 * 4 bytes each
    ...  # 1. your line: the first layer needs no gradient
    model = DDP(nn.Sequential(*layers).to(device))  # 2. your line: smaller buckets
    for _ in range(3):  # each forward notes the buckets of the step before
        model(torch.ones(1, 8, device=device)).sum().backward()
    record("told", buckets=model._get_ddp_logging_data()["rebuilt_bucket_sizes"])

# %% [markdown]
# <details><summary>The two lines</summary>
#
# `layers[0].requires_grad_(False)` and `model = DDP(nn.Sequential(*layers).to(device), bucket_cap_mb=8 * 8 * 4 / 2**20)`
#
# The first must come before DDP wraps the model and notes which parameters need a gradient.
#
# </details>

# %% [markdown]
# ## Exercise
#
# [Let gradients travel during the backward](../exercises/08_inside_ddp.ipynb) · 20 min · checked on real ranks: gradients, waits, overlap.

# %% [markdown]
# ## What you know now
#
# The same three questions.

# %%
questions("08_inside_ddp", after=None)  # run, put your letters in, run again

# %% [markdown]
# ## Without scrolling
#
# 1. A model has 30 MiB of gradients, and `bucket_cap_mb` is 10. How many all-reduces are there in step 1? In step 2, about?
# 2. The network becomes infinitely slow. How much of the communication is exposed, roughly?
#
# <details><summary>Answers</summary>
#
# 1. One. Three.
# 2. Nearly all: the backward can hide at most as much as it takes itself.
#
# </details>

# %% [markdown]
# ## In your terminal
#
# ```
# .venv/bin/torchrun --nproc-per-node 2 ddp_lessons/scripts/08_inside_ddp/mini.py
# ```

# %% [markdown]
# ## In practice
#
# - **On NCCL.** An all-reduce is put into a queue of the GPU, and the call returns at once. At the end of the backward, the GPU waits for the buckets and Python does not: it goes on to `step()`, whose work queues up behind them ([documentation](https://docs.pytorch.org/docs/stable/distributed.html#synchronous-and-asynchronous-collective-operations)). So there a span that Python times says when work was queued. The traces on this page ask for the CPU.
# - **Many machines.** The network between machines is usually slower than the links inside one, so more is exposed.
# - **Fine print.** `gradient_as_bucket_view=True` saves the copy: gradients then live in the buckets. The [design note](https://docs.pytorch.org/docs/stable/notes/ddp.html) describes the parts by their names in the source.

# %% [markdown]
# Next: [Know what DDP does not do](09_ddp_contract.ipynb)
