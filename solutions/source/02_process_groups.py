# %% [markdown]
# # Exercise: will they meet?
#
# 8 min · moderate · after [lesson 02](../notebooks/02_process_groups.ipynb)
#
# A script that does nothing is hard to read. Predict what `init_process_group` does in twelve processes, started by hand on one machine. No launcher helps: `RANK` 0 opens the store.
#
# | start | `RANK`/`WORLD_SIZE` of each process |
# |---|---|
# | A | 0/3 · 1/3 · 2/3, whose `MASTER_PORT` is wrong |
# | B | 1/2 · a second later: 0/2 |
# | C | 0/2 · a second later: 0/2 |
# | D | 1/2 · 2/2 |
# | E | 0/2 · 1/2 · a second later: 2/2 |
#
# - **goes on**: it returns. The process then stays in its group.
# - **raises**: it raises an error at once.
# - **waits**: neither, for at least four seconds.
#
# The check starts them all and compares, which takes 5 to 10 seconds.

# %%
from ddp_lessons import check, views

# %%
# %%exercise 02_process_groups/will_they_meet
def will_they_meet():
    """A dict: each start, "A" to "E", with a list of "goes on", "raises" or "waits".

    The list has a word for each process of the start, in the order of the table. So it looks like
    {"A": ["waits", "raises", "goes on"], "B": [...], ...}
    """
    ### BEGIN SOLUTION
    return {
        "A": ["waits", "waits", "waits"],
        "B": ["goes on", "goes on"],
        "C": ["waits", "raises"],
        "D": ["waits", "waits"],
        "E": ["goes on", "goes on", "raises"],
    }
    ### END SOLUTION

# %%
check("02_process_groups/will_they_meet")

# %% [markdown]
# <details><summary>Hint 1: three questions</summary>
#
# Ask of each process, in this order, and stop at the first no: does it open or reach a store? Is its own number possible? Will everybody come for whom it waits?
#
# </details>
#
# <details><summary>Hint 2: what can a process know?</summary>
#
# It cannot see who will come later, or that somebody never will. It knows what it was told, what its own port does, and what stands in the store. What may still become right is no error; and nobody looks at its number before it has reached a store.
#
# </details>
#
# <details><summary>Hint 3: who opens the store?</summary>
#
# A process with `RANK` 0 opens the store, which needs a free address. All others try to reach it, as often as it takes. Who has reached it waits until ranks 0 to `WORLD_SIZE` - 1 are there.
#
# </details>

# %% [markdown] tags=["solution"]
# ## Why it works
#
# Each process takes three steps: open the store or reach it, wait for everybody, go on.
#
# - **A.** The third process looks where nobody listens. It tries again and again. The other two wait for it. Nobody learns of the mistake before the timeout.
# - **B.** Rank 1 is early and finds no store yet. It tries again until there is one. Then both go on.
# - **C.** The first process waits for a rank 1. The second one is to open a store at an address that is taken: it raises. A second rank 0 is no rank 1.
# - **D.** Ranks count from 0. Without a rank 0 there is no store, and both look for it.
# - **E.** Two of two go on. The third finds the store and comes as far as the group, which has no rank 2: it raises.

# %% tags=["solution"]
from ddp_lessons.checks.starts import measured

views.starts(measured())

# %% [markdown] tags=["solution"]
# ## It could also be
#
# A rule in place of five answers. A process that looks where no store is waits. One that opens a second store raises, and so does one whose `RANK` is not below `WORLD_SIZE`. The rest go on if their ranks are complete, and wait if not.
