# %% [markdown]
# # Build an all-reduce from sends
#
# You will add up a tensor over all ranks with nothing but `send` and `recv`, first through rank 0, then around a ring, and count every byte on its way.
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
# This is the line of lesson 01 that this lesson takes apart.

# %%
from ddp_lessons import compare, launch, show, views

show("01_why_ddp/ddp.py", light="all_reduce(")

# %% [markdown]
# ## Through rank 0
#
# One line of code, and every rank has the sum. But the numbers must travel, and DDP makes them travel at every step. Which rank sends how many bytes? Build it yourself, the plain way first: rank 0 collects, adds, and hands out.

# %%
show("05_ring_all_reduce/naive.py", light=["send(", "recv("])

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
# With N ranks and a tensor of S bytes, rank 0 sends (N − 1) S. It grows with N; all others wait for it.

# %% [markdown]
# ## Around a ring
#
# Let each rank send to its right neighbour only. The last one sends to rank 0. A pair of ranks, with its direction, is a **link**. Cut the tensor into N parts, its **chunks**. In each step every rank sends one chunk and adds the one that comes in to its own.

# %%
show("05_ring_all_reduce/reduce_scatter.py", light=["# 1.", "# 2.", "# 3."])

# %%
half = launch("05_ring_all_reduce/reduce_scatter.py", world_size=4)
views.ring(half)

# %% [markdown]
# Run the cell, then press Play, or move the slider with the arrow keys.
#
# This is a reduce-scatter: rank 0 has the first part of the sum, rank 1 the second. It is half of **ring all-reduce**. In the other half the finished chunks go around, in N − 1 more steps. You will build that one in the exercise.
#
# <details><summary>Why `batch_isend_irecv`?</summary>
#
# Every rank must send and receive at the same time. It starts both, and returns a list of what you wait for.
#
# </details>

# %% [markdown]
# ## Contrast: one busy link, all links busy
#
# > **Guess.** Through rank 0, all ranks together send 192 bytes. How many do they send in the whole ring, both halves? Vote, discuss, vote again.

# %%
guess = None  # your number
compare(guess, 2 * sum(sent(half)))  # the second half sends as much: your exercise will count

# %%
views.links({"through rank 0": naive, "ring": half}, half="ring")

# %% [markdown]
# The ring sends no byte less. It spreads them: no link is idle, and no rank sends more than another.
#
# Now with 840 numbers, S = 6,720 bytes, on 2 to 8 ranks.

# %%
def each(script, sizes, entries):
    name = f"05_ring_all_reduce/{script}"
    return [launch(name, world_size=n, args=[str(entries)]) for n in sizes]

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
# `tensor_split` cuts as evenly as it can. The next script puts `dist.all_gather` in place of the second half, and compares with `dist.all_reduce`.

# %%
show("05_ring_all_reduce/all_reduce.py", since="05_ring_all_reduce/reduce_scatter.py")

# %% [markdown]
# > **Guess.** 3 numbers on 4 ranks. How long is the shortest chunk?

# %%
guess = None  # your number
odd = [("4", 6), ("4", 3), ("1", 5)]  # ranks, numbers
runs = []
compare(guess, 0)

# %% [markdown]
# ## When the ring loses
#
# > **Guess.** 8 ranks add up one number, 8 bytes. Through rank 0 takes 14 messages. How many does the first half of the ring take?

# %%
guess = None  # your number
[small], [ring] = each("naive.py", [8], 1), each("reduce_scatter.py", [8], 1)
compare(guess, sum("send" in call.op for call in ring.calls))

# %%
views.links({"through rank 0": small, "ring": ring}, half="ring")

# %% [markdown]
# TODO

# %% [markdown]
# ## Break it
#
# Here each rank sends first, and then receives.

# %%
show("05_ring_all_reduce/circle.py", light=["send(", "recv("])

# %% tags=["raises-exception"]
launch("05_ring_all_reduce/circle.py", world_size=3, timeout=4, device="cpu")

# %% [markdown]
# TODO
