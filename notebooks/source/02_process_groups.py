# %% [markdown]
# # Form a process group
#
# You will bring separate processes together into one group, watch them wait for each other, and write the set-up and clean-up that every script needs.
#
# 30 min · 2 ranks on any laptop · needs 00, 01 · new terms: process group, store, rendezvous, backend, collective

# %% [markdown]
# ## Recall
#
# 1. `x = torch.ones(3)` runs on rank 0 only. What is `x` on rank 1?
# 2. Why does `launch()` name one rank first when two have failed?
# 3. Two ranks, `DataLoader(batch_size=16)` on each. How large is the global batch?
#
# <details><summary>Answers</summary>
#
# 1. Undefined. Each rank has its own memory.
# 2. A rank that fails pulls down the ranks that wait for it. The first one shows the cause.
# 3. 32 samples.
#
# </details>

# %% [markdown]
# ## What you know already
#
# Three questions, one minute.

# %%
from ddp_lessons import questions

questions("02_process_groups", before=None)  # run, put your letters in, run again

# %% [markdown]
# These are the lines of lesson 01 that this lesson explains.

# %%
from ddp_lessons import compare, launch, show, views

show("01_why_ddp/ddp.py", light="lesson 02")

# %% [markdown]
# ## Two numbers for every rank
#
# `WORLD_SIZE` is how many processes there will be. `RANK` is this process's number, from 0 to `WORLD_SIZE` - 1. Whoever starts the workers sets both as environment variables: `launch()`, `torchrun`, or your cluster's start script.

# %% [markdown]
# ## The meeting
#
# The workers are separate processes, so at first they cannot talk. `init_process_group` makes them a **process group**: ranks that can send each other tensors. For this they need one place that all of them can reach. That place is the **store**, a small table of keys and values behind the address `MASTER_ADDR:MASTER_PORT`. The ranks leave there what the others need to reach them. This meeting is called the **rendezvous**.
#
# Without a launcher, rank 0 opens the store. The port must be free, or rank 0 fails: `EADDRINUSE`, address already in use. The other ranks try to reach the store again and again until a timeout. Once there, a rank whose number is not below `WORLD_SIZE` is refused with an error.
#
# In the next script, rank 1 comes one second late on purpose. The Run knows when each rank called `init_process_group` (`run[1].called`) and when that returned (`run[0].joined`).

# %%
show("02_process_groups/meet.py", light=["sleep", "init_process_group("])

# %% [markdown]
# > **Guess.** Rank 0 is early. Does it leave `init_process_group` before rank 1 has called it? True or False? Vote, discuss, vote again.

# %%
guess = None  # True or False
run = launch("02_process_groups/meet.py", world_size=2)
compare(guess, run[0].joined < run[1].called)

# %%
views.meeting(run)

# %% [markdown]
# An early rank waits: a group of two exists only when both are there.
#
# <details><summary>How long does it wait?</summary>
#
# As long as `init_process_group(timeout=...)` allows. The default is 30 minutes for gloo and 10 minutes for NCCL ([source](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/distributed/distributed_c10d.py), `_get_default_timeout`). So a rank that never comes looks like a program that does nothing.
#
# </details>

# %% [markdown]
# ## Set up and clean up
#
# The frame has four parts: choose a device, meet, work, leave. Because of the `finally`, a rank leaves the group after an error too.

# %%
show("02_process_groups/setup.py")

# %% [markdown]
# > **Guess.** Rank 0 brings 1, rank 1 brings 2, and both call `all_reduce`, which adds up. A call like this, which all ranks make together, is a **collective**. What does each rank hold afterwards?

# %%
guess = None  # your number
run = launch("02_process_groups/setup.py", world_size=2)
compare(guess, run.values("sum"))

# %% [markdown]
# In scripts, `with process_group() as device:` stands for this frame.

# %% [markdown]
# ## Backends: who carries the data
#
# The **backend** is the library that moves the tensors. You name it in `init_process_group`.
#
# | backend | moves tensors between | you have it if |
# |---|---|---|
# | `nccl` | GPUs | torch was built for GPUs, on Linux |
# | `gloo` | CPUs (some calls on GPUs, slowly) | always |
# | `mpi` | what your MPI supports | you built torch from source with MPI |
#
# The machine check of lesson 00 lists yours. The line under a Run's table names the one that was chosen for it.

# %%
run

# %% [markdown]
# ## Contrast: a kernel alone
#
# This notebook's kernel, the process that runs its cells, is one process. Here it says that it is rank 0 of 2, and nobody starts rank 1. A short limit saves you from waiting for half an hour.

# %%
from datetime import timedelta
import torch.distributed as dist

alone = {"init_method": "tcp://127.0.0.1:0", "rank": 0, "world_size": 2}
try:
    dist.init_process_group("gloo", timeout=timedelta(seconds=2), **alone)
except dist.DistStoreError as error:
    print(error)

# %% [markdown]
# One of two came. (The store counts whole seconds, and adds one.) A cell runs in one process, and a group of two needs two. Without `rank` and `world_size` the call fails at once: nobody has set `RANK` in this kernel.

# %% [markdown]
# ## Break it
#
# Two ranks start this script.

# %%
show("02_process_groups/one_short.py")

# %% [markdown]
# Run the cell. Which ranks are in the group? At which line do they wait, and for whom? Then unfold.

# %% tags=["raises-exception"]
launch("02_process_groups/one_short.py", world_size=2, timeout=4)  # seconds

# %% [markdown]
# <details><summary>Rank, line and cause</summary>
#
# No rank is in a group. Ranks 0 and 1 both wait in `init_process_group`, line 9, for a rank 2 that nobody started. Nothing is wrong with either of them.
#
# </details>

# %% [markdown]
# ## Complete it
#
# Two lines are missing. You are done when both ranks record `size` 2 and `still_in` False.

# %%
# %%ranks -n 2 -o mine
import torch
import torch.distributed as dist
from ddp_lessons.worker import record

# 1. Which backend can this machine use?
backend = "nccl" if torch.cuda.device_count() >= 2 else "gloo"
# 2. Meet.
...  # your line
# 3. Work.
record("joined", size=dist.get_world_size() if dist.is_initialized() else None)
# 4. Leave.
...  # your line
record("after", still_in=dist.is_initialized())

# %% [markdown]
# <details><summary>The two lines</summary>
#
# `dist.init_process_group(backend)` and `dist.destroy_process_group()`
#
# </details>

# %% [markdown]
# ## Exercise
#
# [Will they meet?](../exercises/02_process_groups.ipynb) · 8 min · a prediction, checked by real processes: who waits, who raises, who goes on.

# %% [markdown]
# ## Other ways to meet
#
# Unfold the table. The script below meets by a file, and then leaves twice: `error` is what the second time raises.
#
# <details><summary>init_method, ports that are taken, and leaving twice</summary>
#
# | how | what it means |
# |---|---|
# | nothing, or `env://` | read `MASTER_ADDR`, `MASTER_PORT`, `RANK` and `WORLD_SIZE` from the environment. This is what `torchrun` is for. |
# | `tcp://host:port` | the address stands in the call. You pass `rank=` and `world_size=` too. |
# | `file:///path` | the store is a file that all ranks can reach. It must be new or empty. The store needs no port; the connections between ranks still do. This works on Windows, too. |
# | a port that is taken | `EADDRINUSE`. Choose another port, or let `torchrun --standalone` choose. |
# | `destroy_process_group` twice | the second call raises `AssertionError`: there is no group any more. |
#
# </details>

# %%
launch("02_process_groups/ways.py", world_size=2)

# %% [markdown]
# ## What you know now
#
# The same three questions.

# %%
questions("02_process_groups", after=None)  # run, put your letters in, run again

# %% [markdown]
# ## Without scrolling
#
# 1. Rank 0 of 4 has called `init_process_group`. What must happen before it returns?
# 2. Why can a notebook's kernel not form a group of two by itself?
#
# <details><summary>Answers</summary>
#
# 1. Ranks 1, 2 and 3 must call it as well, with the same store.
# 2. A kernel is one process. No other rank ever comes.
#
# </details>

# %% [markdown]
# ## In your terminal
#
# ```
# .venv/bin/torchrun --nproc-per-node 2 ddp_lessons/scripts/02_process_groups/setup.py
# ```

# %% [markdown]
# ## In practice
#
# - **On NCCL.** With `device_id=`, `init_process_group` connects the GPUs at once. Without it, that happens at the first collective, and `init_process_group` may return before the others have come ([documentation](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.init_process_group)). A rank that has failed may wait there for the others when it leaves. So after an error `process_group()` leaves out part 4: end the process instead.
# - **Many machines.** `MASTER_ADDR` must be an address that every machine can reach. Ranks also talk on ports that the system chooses, so open the firewall between the machines, not only `MASTER_PORT`.
# - **Fine print.** If you forget `destroy_process_group`, gloo can abort when Python ends, and NCCL [warns](https://docs.pytorch.org/docs/stable/distributed.html#shutdown). `launch()` hides both.

# %% [markdown]
# Next: [Place ranks on machines and devices](03_rank_and_world_size.ipynb)
