# %% [markdown]
# # Exercise: one function, two machines
#
# 8 min · moderate · after [lesson 03](../notebooks/03_rank_and_world_size.ipynb)
#
# A script that works on your laptop may go wrong on two machines, where `RANK` and `LOCAL_RANK` differ. Write the function that each rank calls to find its part of the work.
#
# - **Device:** the GPU for this rank, by name. Each machine has as many GPUs as ranks, counted from 0. Nothing is put on them, so you need none.
# - **Shard:** this rank's samples. Each of the `n` samples goes to one rank; sizes differ by at most 1.
# - **File:** rank 0, and nobody else, writes how many ranks there are.
#
# The check calls it on one machine with 3 ranks, then on two machines with 2 ranks each. That takes a few seconds.

# %%
from ddp_lessons import check, views

# %%
# %%exercise 03_rank_and_world_size/two_machines
import os


def my_part(n, folder):
    """This rank's part of the work, as (device, shard). Every rank calls it, in a process group.

    n: how many samples there are, numbered 0 to n - 1. It need not divide evenly.
    folder: a Path. The file is folder / "ranks.txt", that number as text.
        (The check gives each rank a folder of its own, so that it sees who writes.)
    device: "cuda:0", "cuda:1", ...
    shard: a list of sample numbers, in any order.
    """
    ### BEGIN SOLUTION
    rank = int(os.environ["RANK"])
    world_size = int(os.environ["WORLD_SIZE"])
    local_rank = int(os.environ["LOCAL_RANK"])
    if rank == 0:
        (folder / "ranks.txt").write_text(str(world_size))
    return f"cuda:{local_rank}", list(range(n))[rank::world_size]
    ### END SOLUTION

# %%
check("03_rank_and_world_size/two_machines")

# %% [markdown]
# <details><summary>Hint 1: which number?</summary>
#
# Ask of each of the three: is it counted on one machine, or over all machines? The table in the lesson says what each variable counts.
#
# </details>
#
# <details><summary>Hint 2: what the environment holds</summary>
#
# `os.environ` holds text. `int(...)` makes a number of it, which you can compare and calculate with.
#
# </details>
#
# <details><summary>Hint 3: dealing out the samples</summary>
#
# Deal them like cards: one to each rank in turn, until none is left. Which numbers does a rank get then, and how far apart are they?
#
# </details>

# %% [markdown] tags=["solution"]
# ## Why it works
#
# Three numbers for three questions. A GPU belongs to one machine: `LOCAL_RANK`. The samples and the file belong to all ranks together: `RANK` and `WORLD_SIZE`.
#
# The slice begins at this rank's number and goes on in steps of `WORLD_SIZE`, as cards are dealt. What is left over at the end goes to the first ranks, one each. The picture shows what the four ranks on two machines took: ranks 2 and 3 are on the second machine, with the local ranks 0 and 1.

# %% tags=["solution"]
run = check("03_rank_and_world_size/two_machines").runs[1]
views.shard_map({"two machines": run})

# %% [markdown] tags=["solution"]
# ## It could also be
#
# Blocks instead of cards: rank r takes the samples from `n * r // world_size` up to `n * (r + 1) // world_size`, the end left out. Each block begins where the one before it ends, so none is lost, and rounding down spreads the rest over the ranks.
