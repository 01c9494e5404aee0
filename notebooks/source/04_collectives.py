# %% [markdown]
# # Move tensors between ranks
#
# You will move tensors with six calls, see what each of them leaves on every rank, and find out what one call too many does.
#
# 40 min · 2 ranks on any laptop, 3 and 4 in single cells · needs 02, 03 · new terms: broadcast, all-reduce, all-gather, reduce-scatter, sub-group

# %% [markdown]
# ## Recall
#
# 1. What is a collective?
# 2. When are `RANK` and `LOCAL_RANK` the same?
# 3. `if rank == 0:` with a `barrier()` inside. What happens?
#
# <details><summary>Answers</summary>
#
# 1. A call that all ranks of a group make together.
# 2. On the first node. If there is only one node, for all ranks.
# 3. Rank 0 waits for the others in vain: a deadlock.
#
# </details>

# %% [markdown]
# ## What you know already
#
# Three questions, one minute.

# %%
from ddp_lessons import questions

questions("04_collectives", before=None)  # run, put your letters in, run again

# %% [markdown]
# The line of lesson 01 that this lesson explains:

# %%
from ddp_lessons import WorkerError, compare, launch, show, views

show("01_why_ddp/ddp.py", light="lesson 04")

# %% [markdown]
# ## Broadcast and all-reduce
#
# **Broadcast** gives every rank the tensor of one rank. **All-reduce** adds up the tensors of all ranks, entry by entry, and gives every rank the sum.
#
# On this page rank 0 starts with ones and rank 1 with tens. So the digits of a sum say who gave what.

# %%
show("04_collectives/overwrite.py", light=["mine =", "broadcast(", "all_reduce("])

# %% [markdown]
# > **Guess.** After `y = dist.all_reduce(x)`, which variable holds the sum?

# %%
guess = None  # "x", "y" or "both"
moved = launch("04_collectives/overwrite.py", world_size=2)
compare(guess, "x" if moved.values("y") == [None, None] else "both")

# %%
views.before_after(moved)

# %% [markdown]
# Both calls write into the tensor they are given, so what it held before is gone. Write `dist.all_reduce(x)`, and clone `x` first if you still need it.

# %% [markdown]
# ## Contrast: two ways to make the list
#
# **All-gather** gives every rank the tensors of all ranks, in rank order. You hand it a list with one tensor of the right size for each rank. The script does this twice. Its second list looks shorter to write.

# %%
show("04_collectives/all_gather.py", light=["parts = ", "copies = ", "all_gather("])

# %% [markdown]
# > **Guess.** Rank 0 brings `[1, 2]`, rank 1 `[10, 20]`. What is in `copies[0]` afterwards, on rank 0?

# %%
guess = None  # a list
gathered = launch("04_collectives/all_gather.py", world_size=2)
compare(guess, gathered.values("copies")[0][0])

# %%
views.before_after(gathered)

# %% [markdown]
# `[buffer] * n` is one tensor, listed n times: each rank's part overwrites the one before. No error says so. And `x` stays as it was in both calls: all-gather only reads it.

# %% [markdown]
# ## All-reduce in two halves
#
# **Reduce-scatter** adds up too, but each rank gets only its own part of the sum: rank 0 the first, rank 1 the second. Then all-gather can bring the parts together.

# %%
show("04_collectives/two_halves.py", light=["all_reduce(", "reduce_scatter(", "all_gather("])

# %%
halves = launch("04_collectives/two_halves.py", world_size=2)
assert all(halves.values("equal"))  # the parts, joined, are the whole
views.before_after(halves)

# %% [markdown]
# All-reduce is reduce-scatter, then all-gather: the same numbers on every rank.
#
# <details><summary>Why would anybody take the two apart?</summary>
#
# Between them, no rank needs the whole sum. That can save memory, and a backend can share the work of adding. (gloo in torch 2.13 does not: it makes an all-reduce for each part.) The next lesson builds the first half from single messages.
#
# </details>

# %% [markdown]
# ## From one rank to one other
#
# `send` and `recv` are a pair. Two ranks take part: one names the receiver, the other the sender.

# %%
# %%ranks -n 2
import torch
import torch.distributed as dist
from ddp_lessons.worker import process_group, record

with process_group() as device:
    x = torch.arange(1, 3, device=device) * 10 ** dist.get_rank()
    if dist.get_rank() == 0:
        dist.send(x, dst=1)
    else:
        dist.recv(x, src=0)  # overwrites x
    record("sent", x=x)
    dist.barrier()

# %% [markdown]
# ## Not all ranks at once
#
# A **sub-group** is a process group of some of the ranks. `new_group` makes it. Only its members make a call with `group=`. The script makes two, on 4 ranks.

# %%
show("04_collectives/sub_groups.py", light=["new_group", "group="])

# %%
views.before_after(launch("04_collectives/sub_groups.py", world_size=4))

# %% [markdown]
# Two sums, each among two ranks. By default every rank must call `new_group` for every group, in the same order, even for those that it is not in ([documentation](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.new_group)).

# %% [markdown]
# ## One call too many
#
# Two ranks add up three times. Rank 1 makes one more `all_reduce`, for its log.

# %%
show("04_collectives/extra_call.py")

# %% [markdown]
# > **Guess.** In the third step rank 0 brings 3 and rank 1 brings 30. Which sum does rank 0 get? Vote, discuss, vote again.

# %%
guess = None  # your number
try:
    launch("04_collectives/extra_call.py", world_size=2, device="cpu")
except WorkerError as error:
    print(error)
    shifted = error.run
compare(guess, shifted.values("x")[0][0])

# %%
views.before_after(shifted)

# %% [markdown]
# Calls pair by their order within a group, not by their line: every sum after the extra call is wrong, on both ranks. They should be 22 and 33.
#
# <details><summary>Who noticed?</summary>
#
# Nobody, while it went on: two all-reduces of one number fit together. Only rank 1's fourth call finds no partner, because rank 0 has left. In training, that is after the last epoch. Then `launch()` raises. Its report names the first calls that met from different lines, 15 and 22. What the ranks recorded until then is in `error.run`.
#
# </details>

# %% [markdown]
# ## Break it: two different calls
#
# From the report, name both calls, their lines and the cause.

# %% tags=["raises-exception"]
# %%ranks -n 2 --device cpu --timeout 5
import torch
import torch.distributed as dist
from ddp_lessons.worker import process_group, record

with process_group():
    x = torch.tensor([dist.get_rank() + 1])
    if dist.get_rank() == 0:
        dist.all_reduce(x)
    else:
        dist.broadcast(x, src=0)
    record("after", x=x)

# %% [markdown]
# <details><summary>Ranks, lines and cause</summary>
#
# Rank 0, line 9: `all_reduce`. Rank 1, line 11: `broadcast`. Each is its rank's first call, so they meet, and they do not fit.
#
# PyTorch alone shows nothing: both ranks wait, up to the timeout of lesson 02.
#
# </details>

# %% [markdown]
# ## Break it: two shapes
#
# Rank 0 brings two ones, rank 1 brings three. Name the line, the cause, and what rank 0 printed.

# %% tags=["raises-exception"]
# %%ranks -n 2 --device cpu --timeout 5
import torch
import torch.distributed as dist
from ddp_lessons.worker import process_group

with process_group():
    x = torch.ones(2 + dist.get_rank())
    dist.all_reduce(x)
    print(x.tolist())
    dist.barrier()

# %% [markdown]
# <details><summary>Ranks, lines and cause</summary>
#
# Rank 0, line 8, brings two numbers. Rank 1, in the same line, brings three.
#
# The report's last line is what PyTorch alone lets you see: rank 0 printed a plausible sum of two numbers, without an error. Rank 1 waits for the third.
#
# </details>

# %% [markdown]
# ## Complete it
#
# Each rank has counted how many of its digits are right. Two lines are missing. You are done when both ranks record 0.6667. (Not 0.625: that is the mean of 3/4 and 1/2.)

# %%
# %%ranks -n 2
import torch
import torch.distributed as dist
from ddp_lessons.worker import process_group, record

with process_group() as device:
    # 1. Right and seen, in one tensor: [3, 4] on rank 0, [1, 2] on rank 1.
    mine = [[3, 4], [1, 2]][dist.get_rank()]
    counts = torch.tensor(mine, device=device)
    # 2. Add up over the ranks.
    ...  # your line
    # 3. Divide.
    accuracy = None  # your line
    record("test", accuracy=accuracy)

# %% [markdown]
# <details><summary>The two lines</summary>
#
# `dist.all_reduce(counts)` and `accuracy = counts[0] / counts[1]`
#
# </details>

# %% [markdown]
# ## Exercise
#
# [All-gather from broadcasts](../exercises/04_collectives.ipynb) · 10 min · checked on real ranks: the result, the calls, the input.

# %% [markdown]
# ## Gallery: the other calls
#
# <details><summary>scatter, gather, reduce, all_to_all, isend and irecv, objects</summary>
#
# | call | what it does |
# |---|---|
# | `scatter` | One rank has a list and gives every rank one entry. |
# | `gather` | All-gather for one rank. The others pass no list. |
# | `reduce` | All-reduce for one rank. On the others, do not use the tensor any more. |
# | `all_to_all_single` | Every rank has one entry for each rank. |
# | `isend`, `irecv` | `send` and `recv` that do not wait. `batch_isend_irecv` starts several, and you wait for all. |
# | `all_gather_object`, `broadcast_object_list`, ... | The same for any Python object. It is [pickled](https://docs.python.org/3/library/pickle.html), and unpickling runs code: only for data that you trust. |
#
# </details>

# %%
gallery = launch("04_collectives/gallery.py", world_size=2)
reduced = launch("04_collectives/reduce.py", world_size=3, device="cpu")
views.before_after(gallery, reduced)

# %% [markdown]
# gloo's `reduce` left partial sums on ranks 1 and 2. Objects cost more than tensors, here in bytes for the same numbers:

# %%
launch("04_collectives/objects.py", world_size=2)

# %% [markdown]
# And each object travels in two calls: first all sizes, then the objects, all padded to the longest ([source](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/distributed/distributed_c10d.py), `all_gather_object`).

# %% [markdown]
# ## What you know now
#
# The same three questions.

# %%
questions("04_collectives", after=None)  # run, put your letters in, run again

# %% [markdown]
# ## Without scrolling
#
# 1. Three ranks hold `[1]`, `[10]` and `[100]`. What does rank 2 hold after a broadcast from rank 0? After an all-reduce instead?
# 2. Early in training, rank 1 makes one `all_reduce` more than rank 0. Which sums are wrong, and when is there an error?
#
# <details><summary>Answers</summary>
#
# 1. `[1]`. `[111]`.
# 2. All that follow, on both ranks. While shapes and dtypes fit, there is no error until one rank's last call finds no partner. If they do not fit, PyTorch can wait, fail or abort.
#
# </details>

# %% [markdown]
# ## In your terminal
#
# ```
# .venv/bin/torchrun --nproc-per-node 2 ddp_lessons/scripts/04_collectives/two_halves.py
# ```

# %% [markdown]
# ## In practice
#
# - **On NCCL.** A collective returns when the GPU has it in its queue, not when it is done ([documentation](https://docs.pytorch.org/docs/stable/distributed.html#synchronous-and-asynchronous-collective-operations)). So there the time of a call says little, and gloo's time nothing about NCCL's. The cells with faults ask for the CPU: NCCL's guide warns of hangs, crashes and corrupt data where calls do not match ([guide](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/collectives.html)).
# - **Without launch().** With `TORCH_DISTRIBUTED_DEBUG=DETAIL` in the environment, PyTorch compares operations and shapes itself ([documentation](https://docs.pytorch.org/docs/stable/distributed.html#debugging-torch-distributed-applications)). It finds both faults under *Break it*, and not the extra call. Leave it off for DDP on gloo: there torch 2.13 crashes.
# - **Mean.** Add up, then divide by the world size. `op=` chooses another operation, such as `dist.ReduceOp.MAX`.
# - **Fine print.** In a sub-group, `src=` and `dst=` are still ranks in the whole group; `group_src=` and `group_dst=` count within it ([documentation](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.broadcast)).

# %% [markdown]
# Next: [Build an all-reduce from sends](05_ring_all_reduce.ipynb)
