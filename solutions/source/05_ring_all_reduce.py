# %% [markdown]
# # Exercise: the other half of the ring
#
# 15 min · moderate · after [lesson 05](../notebooks/05_ring_all_reduce.ipynb)
#
# After the first half of ring all-reduce, chunk r of the sum is finished on rank r. Write the second half: the finished chunks go around until every rank has all of them. On its own this is an all-gather: it collects weights that are spread over the ranks.
#
# - `chunks` are views of one tensor, as in the lesson. Fill them in place.
# - In each of N − 1 steps, a rank sends one chunk to its right neighbour, and nothing else.
# - Call `after_step()` at the end of each step: the check then looks at your chunks.
# - It also counts the bytes. Use only sends and receives.
#
# Fill in the cell, run it, then run the check.

# %%
from ddp_lessons import check, views

# %%
# %%exercise 05_ring_all_reduce/ring_gather
import torch
import torch.distributed as dist


def ring_gather(chunks, after_step):
    """Finish all chunks, in N - 1 steps around a ring of N ranks. Returns nothing.

    chunks: a tuple of N tensors of one dtype. Some may be shorter, or empty. On rank r, chunk r is
    finished; the others hold half-made sums, to be overwritten.
    after_step: takes no arguments; call it at the end of each step.
    """
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    goes = rank
    for _ in range(n - 1):
        comes = (goes - 1) % n
        send = dist.P2POp(dist.isend, chunks[goes], right)
        receive = dist.P2POp(dist.irecv, chunks[comes], left)
        for work in dist.batch_isend_irecv([send, receive]):
            work.wait()
        goes = comes  # pass it on
        after_step()
    ### END SOLUTION


# %%
check("05_ring_all_reduce/ring_gather")

# %% [markdown]
# <details><summary>Hint 1: a table</summary>
#
# Take rank 2 of 4. Which chunk is finished there before step 1? Which one is finished on its left neighbour? Write down, for each of the three steps, which chunk goes and which one comes.
#
# </details>
#
# <details><summary>Hint 2: what changes from step to step?</summary>
#
# Compare the two columns of the table. What comes in one step goes in the next. And since it is finished, nothing is added: it takes the place of what stood there.
#
# </details>
#
# <details><summary>Hint 3: the outline</summary>
#
# Begin with your own chunk. In each step: find the number of the chunk that comes, start the send and the receive together, wait for both, call `after_step()`. What came is the next to go. Mind chunk 0: before it comes the last one.
#
# </details>

# %% [markdown] tags=["solution"]
# ## Why it works
#
# In step 1 every rank has one finished chunk, its own, so that is what it sends. From then on it sends what it received last: the one chunk that its right neighbour lacks. Each comes from one rank further to the left, so the numbers go down by one. After N − 1 steps a chunk has been everywhere.
#
# The receive writes into the chunk itself. So it always has the right length, and nothing is copied. The chunk that goes is another one: what is being sent never changes.

# %% tags=["solution"]
views.links({"second half": check("05_ring_all_reduce/ring_gather").runs[3]})

# %% [markdown] tags=["solution"]
# The tensor has 6 numbers here, 24 bytes, so two chunks have 8 bytes and two have 4. Follow one of them: from step to step it moves one link to the right. Each rank sends all chunks but one.

# %% [markdown] tags=["solution"]
# ## It could also be
#
# A formula for each step instead of passing on: with `for step in range(1, n)`, chunk `(rank - step + 1) % n` goes and chunk `(rank - step) % n` comes. Or plain `send` and `recv`, if even ranks send first and odd ones receive first.
