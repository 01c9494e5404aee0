# %% [markdown]
# # Build an all-reduce from sends
#
# You will add up a tensor over all ranks with nothing but `send` and `recv`, first through rank 0, then around the first half of a ring, and count their bytes.
#
# 40 min · 4 ranks on any laptop, 1 to 8 in single cells · needs 04 · new terms: link, chunk, ring all-reduce

# %% [markdown]
# ## Recall
#
# 1. Rank 0 holds `[1, 1]`, rank 1 holds `[10, 10]`. What does rank 1 hold after a reduce-scatter?
# 2. Which ranks take part in a `send`?
# 3. After `y = dist.all_reduce(x)`, where is the sum?
#
# <details><summary>Answers</summary>
#
# 1. `[11]`: the second part of the sum.
# 2. The one that sends, and the one that calls the `recv`.
# 3. In `x`. `y` is `None`.
#
# </details>

# %% [markdown]
# ## What you know already
#
# Three questions, one minute.

# %%
from ddp_lessons import questions

questions("05_ring_all_reduce", before=None)  # run, put your letters in, run again

# %% [markdown]
# This is the line of lesson 01 that this lesson takes apart.

# %%
from ddp_lessons import compare, launch, show, views

show("01_why_ddp/ddp.py", light="all_reduce(")

# %% [markdown]
# ## Through rank 0
#
# One line of code, and every rank has the sum. But the numbers must travel, and DDP makes them travel at every step. Which rank sends how many bytes? Build it yourself, the plain way first: rank 0 collects, adds, and hands out.

# %%
show("05_ring_all_reduce/naive.py")

# %% [markdown]
# Rank 0 starts with ones, rank 1 with tens, and so on, so the digits of a sum say who is in it.
#
# > **Guess.** 4 ranks, and a tensor of 4 numbers, 32 bytes. How many bytes does rank 0 send?

# %%
guess = None  # your number
naive = launch("05_ring_all_reduce/naive.py", world_size=4)
naive[0].calls[:]

# %% [markdown]
# A Run knows every communication call of every rank: `run.calls` are all of them, `run[0].calls` those of rank 0. So bytes can be counted.


# %%
def sent(run):  # bytes, by rank
    return [sum(call.bytes for call in rank.calls if "send" in call.op) for rank in run]


compare(guess, sent(naive)[0])

# %%
sent(naive)

# %% [markdown]
# With N ranks and a tensor of S bytes, rank 0 sends (N − 1) S. That grows with N, and all others must wait.

# %% [markdown]
# ## Around a ring
#
# Let each rank send to its right neighbour only. The last one sends to rank 0. A pair of ranks, with its direction, is a **link**. Cut the tensor into N parts, its **chunks**. In each step every rank sends one chunk and adds the one that comes in to its own. In the next step it passes on the chunk that it has added to.

# %%
show("05_ring_all_reduce/reduce_scatter.py")

# %% [markdown]
# > **Guess.** Which number is in chunk 1 of rank 1 at the end?

# %%
guess = None  # your number
half = launch("05_ring_all_reduce/reduce_scatter.py", world_size=4)
compare(guess, half.values("mine")[1][0])

# %%
views.ring(half)

# %% [markdown]
# Run the cell, then press Play, or move the slider with the arrow keys.
#
# This is a reduce-scatter: rank 0 has the first part of the sum, rank 1 the second. It is half of **ring all-reduce**. In the other half the finished chunks go around, in N − 1 more steps.
#
# <details><summary>Why <code>batch_isend_irecv</code>?</summary>
#
# Every rank must send and receive at the same time. A `P2POp` describes one of the two. `batch_isend_irecv` starts both, and returns a list of what you wait for.
#
# </details>

# %% [markdown]
# ## Contrast: one busy rank, all ranks busy
#
# > **Guess.** Through rank 0, all ranks together send 192 bytes. How many do they send in the whole ring, both halves? Vote, discuss, vote again.

# %%
guess = None  # your number
compare(guess, 2 * sum(sent(half)))

# %%
views.links({"through rank 0": naive, "ring": half}, half="ring")

# %% [markdown]
# The second half sends as many bytes as the first, so the ring does not send fewer bytes. It spreads them: no link is idle, and no rank sends more than another.
#
# Now with 840 numbers, S = 6,720 bytes, on 2 to 8 ranks.


# %%
def each(script, sizes, entries):
    name = f"05_ring_all_reduce/{script}"
    return [launch(name, n, args=[str(entries)], device="cpu") for n in sizes]


naives = each("naive.py", range(2, 9), 840)
halves = each("reduce_scatter.py", range(2, 9), 840)
views.busiest(naives, halves, half=True)

# %% [markdown]
# The busiest rank sends 2 (N − 1)/N S in the ring: less than 2 S, however many ranks there are.
#
# <details><summary>Where does the formula come from?</summary>
#
# A chunk has S/N bytes. Each half has N − 1 steps, and in each step a rank sends one chunk. So on 8 ranks, 100 MB make 700 MB from rank 0, and 175 MB from each rank of the ring.
#
# </details>

# %% [markdown]
# ## Any size, any number of ranks
#
# `tensor_split` cuts as evenly as it can. The next script lets `dist.all_gather` do the second half, and compares with `dist.all_reduce`.

# %%
show("05_ring_all_reduce/all_reduce.py", light=["return chunks", "all_gather(", "equal="])

# %% [markdown]
# > **Guess.** 3 numbers on 4 ranks. How long is the shortest chunk?

# %%
guess = None  # your number
odd = [each("all_reduce.py", [n], entries)[0] for n, entries in [(4, 6), (4, 3), (1, 5)]]
compare(guess, min(odd[1].values("chunks")[0]))

# %%
[(run.values("chunks")[0], all(run.values("equal"))) for run in odd]

# %% [markdown]
# The sum is right each time. An empty chunk still makes its rounds, and one rank alone sends nothing.
#
# <details><summary>How many bytes did <code>all_gather</code> send?</summary>
#
# `run.calls` cannot say. It knows what a script asks for: one call, and the bytes that this rank puts in. What travels then is the backend's choice. So the bytes on this page come from the sends of the first half, and the second half is doubled, not counted.
#
# </details>

# %% [markdown]
# ## Small tensors
#
# > **Guess.** 8 ranks add up one number, 8 bytes. Through rank 0 that takes 14 messages. How many does the first half of the ring take?

# %%
guess = None  # your number
[tiny] = each("reduce_scatter.py", [8], 1)
messages = [call.bytes for call in tiny.calls if "send" in call.op]
compare(guess, len(messages))

# %%
messages.count(0)  # empty ones

# %% [markdown]
# Most of them carry nothing. And each rank sends only after its last message has come: in the whole ring 14 steps wait for one another. Through rank 0 a number is passed on only twice, in and out, but rank 0 handles all 14 messages, one after another. A message has a price even when it is empty, so for small tensors on many ranks other algorithms win. NCCL chooses its algorithm [by the size](https://github.com/NVIDIA/nccl/issues/754); one of them is a tree.

# %% [markdown]
# ## Break it: everybody sends first
#
# The same circle with plain `send` and `recv`.

# %%
show("05_ring_all_reduce/circle.py")

# %% [markdown]
# Run the cell. Name the ranks, the line and the cause, then unfold.

# %% tags=["raises-exception"]
launch("05_ring_all_reduce/circle.py", world_size=3, timeout=4, device="cpu")

# %%
import sys

views.waits(sys.last_value.run)

# %% [markdown]
# <details><summary>Ranks, line and cause</summary>
#
# Rank 0, line 13, waits until rank 1 receives. But rank 1 waits in the same line for rank 2, and rank 2 for rank 0. Nobody gets to `recv`: a deadlock in a circle. On gloo, a `send` waits for its `recv`, even for 8 bytes.
#
# Two ways out: start both at once, as the ring above does, or let one rank receive first.
#
# </details>

# %% [markdown]
# ## Complete it
#
# Four ranks in a row, not in a ring: each adds its number to what comes from the left, and passes the sum on. Two lines are missing. You are done when the ranks record 1, 11, 111 and 1111.

# %%
# %%ranks -n 4
import torch
import torch.distributed as dist
from ddp_lessons.worker import process_group, record

with process_group() as device:
    rank, n = dist.get_rank(), dist.get_world_size()
    x, parcel = torch.tensor([[10**rank], [0]], device=device)
    if rank > 0:  # 1. What comes from the left?
        ...  # your line
    x += parcel
    if rank < n - 1:  # 2. What goes to the right?
        ...  # your line
    record("row", x=x)

# %% [markdown]
# <details><summary>The two lines</summary>
#
# `dist.recv(parcel, src=rank - 1)` and `dist.send(x, dst=rank + 1)`
#
# No deadlock here: rank 0 has nobody to wait for.
#
# </details>

# %% [markdown]
# ## Exercise
#
# [The other half of the ring](../exercises/05_ring_all_reduce.ipynb) · 15 min · checked on real ranks: the chunks after every step, the bytes.

# %% [markdown]
# ## What you know now
#
# The same three questions.

# %%
questions("05_ring_all_reduce", after=None)  # run, put your letters in, run again

# %% [markdown]
# ## Without scrolling
#
# 1. 4 ranks all-reduce a tensor of 100 MB. How much does the busiest rank send through rank 0, and how much in a ring?
# 2. All ranks together: which of the two ways sends less?
#
# <details><summary>Answers</summary>
#
# 1. 3 · 100 MB = 300 MB; 2 · 3/4 · 100 MB = 150 MB.
# 2. Neither: 600 MB each.
#
# </details>

# %% [markdown]
# ## In your terminal
#
# ```
# .venv/bin/torchrun --nproc-per-node 4 ddp_lessons/scripts/05_ring_all_reduce/reduce_scatter.py
# ```

# %% [markdown]
# ## In practice
#
# - **On NCCL.** A send and a receive that must run at the same time [belong in one group](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/p2p.html), or they may block each other. `batch_isend_irecv` makes that group.
# - **On gloo.** Its own all-reduce [is a ring](https://github.com/pytorch/gloo/blob/main/gloo/allreduce.cc) unless it is told otherwise.
# - **Many machines.** In a ring, only the links between neighbours count. So ranks on one machine should be neighbours, and few links should cross between machines.
# - **Fine print.** Use `dist.all_reduce`. You built one by hand to know what the call costs.

# %% [markdown]
# Next: [Average gradients across ranks](06_gradient_averaging.ipynb)
