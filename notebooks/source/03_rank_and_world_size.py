# %% [markdown]
# # Place ranks on machines and devices
#
# You will read a rank's place from its environment, give every rank a device of its own, and let one rank do what must be done once.
#
# 40 min · 2 ranks on any laptop, 4 and 64 in single cells · needs 02 · new terms: local rank, node, barrier, deadlock

# %% [markdown]
# ## Recall
#
# 1. Rank 0 of 2 has called `init_process_group`, rank 1 has not. What does rank 0 do?
# 2. Which backend carries tensors between GPUs, and which between CPUs?
# 3. In which order does a Run list its ranks?
#
# <details><summary>Answers</summary>
#
# 1. It waits, up to the timeout.
# 2. NCCL; gloo.
# 3. In rank order, whatever the order in time.
#
# </details>

# %% [markdown]
# ## What you know already
#
# Three questions, one minute.

# %%
from ddp_lessons import questions

questions("03_rank_and_world_size", before=None)  # run, put your letters in, run again

# %% [markdown]
# These lines of lesson 01 are explained here.

# %%
from ddp_lessons import compare, launch, show, views

show("01_why_ddp/ddp.py", light=["LOCAL_", "torch.device(", "get_world_size"])

# %% [markdown]
# ## Two machines
#
# A machine in a cluster is a **node**. `RANK` counts through all nodes. But a rank also needs its number on its own node, to choose among the GPUs there. That number is the **local rank**.
#
# | variable | says |
# |---|---|
# | `RANK` | which of all ranks am I |
# | `WORLD_SIZE` | how many ranks on all nodes |
# | `LOCAL_RANK` | which of the ranks on this node am I |
# | `LOCAL_WORLD_SIZE` | how many ranks on this node |
#
# The next cell runs 4 ranks on 2 nodes. Both nodes are this computer: two `torchrun` processes start, and each acts as one machine.

# %%
show("03_rank_and_world_size/who.py")

# %% [markdown]
# > **Guess.** Two ranks on each node. What is `LOCAL_RANK` on rank 3?

# %%
guess = None  # your number
places = launch("03_rank_and_world_size/who.py", world_size=4, nnodes=2, engine="torchrun")
compare(guess, places.values("LOCAL_RANK")[3])

# %%
views.machines(places)

# %% [markdown]
# On one machine both numbers are the same. So a script that mixes them up works on a laptop, and fails on a cluster.

# %% [markdown]
# ## A device for each rank
#
# With NCCL, two ranks [must not share a GPU](https://docs.pytorch.org/docs/stable/distributed.html#initialization). So each takes the one with its local rank: `cuda:0`, `cuda:1`, and so on. `ddp.py` asks first whether this node has a GPU for each of its ranks; if not, all of them use the CPU.
#
# The variable `CUDA_VISIBLE_DEVICES` hides GPUs from a process. The visible ones are renumbered from 0.

# %%
show("03_rank_and_world_size/visible.py", light="gpus")

# %% [markdown]
# > **Guess.** `CUDA_VISIBLE_DEVICES=2,3`, two ranks. Which GPU of the node is `cuda:1` on rank 1?

# %%
guess = None  # a GPU's number
run = launch("03_rank_and_world_size/visible.py", env={"CUDA_VISIBLE_DEVICES": "2,3"})
compare(guess, run.values("number")[1])

# %% [markdown]
# `cuda:1` is the second GPU that this process can see.
#
# <details><summary>Was a GPU touched here?</summary>
#
# No. The script reads the variable, as CUDA does, and works the number out. It runs on a machine without GPUs. What CUDA does with the variable stands in its [programming guide](https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html).
#
# </details>

# %% [markdown]
# ## Contrast: once for all, before and after a barrier
#
# Some work must be done once: download the data, write a checkpoint, print. By convention, rank 0 does it. The others must not go on before it is done. `dist.barrier()` is a **barrier**: no rank leaves it before every rank has come.

# %%
show("03_rank_and_world_size/once.py", light=["if dist.get_rank()", "barrier()"])

# %% [markdown]
# > **Guess.** Rank 1 looks for the file when it comes to the barrier. Is it there? True or False? Vote, discuss, vote again.

# %%
guess = None  # True or False
run = launch("03_rank_and_world_size/once.py", world_size=2)
compare(guess, run.values("before")[1])

# %%
run

# %% [markdown]
# Before the barrier, rank 1 finds nothing. After it, both ranks see the file, because they share a disk. Before it, the two raced: with less work on rank 0, either answer could come.

# %% [markdown]
# ## 64 ranks on this computer
#
# Ranks are processes, so their number is not tied to the number of cores. They take turns.

# %%
run = launch("03_rank_and_world_size/roll_call.py", world_size=64)
views.machines(run)

# %% [markdown]
# > **Guess.** Every rank puts its own number into one sum. What do 64 ranks get?

# %%
guess = None  # your number
compare(guess, run.values("total"))

# %% [markdown]
# The sum does not depend on the number of cores. Speed does, so nothing here says how fast 64 GPUs would be.

# %% [markdown]
# ## Claim check: "if local_rank == 0: save the model"
#
# Some posts call `LOCAL_RANK` the rank of the process, and let local rank 0 write the checkpoint. Count the writers under both rules, with the four ranks on two nodes from above.

# %%
places.values("RANK").count(0), places.values("LOCAL_RANK").count(0)

# %% [markdown]
# This rule makes one writer per node. On storage that the nodes share, they write the same file at the same time. With `RANK` there is one.

# %% [markdown]
# ## Break it
#
# Like `once.py`, in short, with one line in another place.

# %%
show("03_rank_and_world_size/stuck.py")

# %% tags=["raises-exception"]
launch("03_rank_and_world_size/stuck.py", world_size=2, device="cpu")

# %% [markdown]
# The report names two calls that do not fit. Bare `torchrun` prints no such report: both ranks wait, for up to 30 minutes. Find the two lines, say what is wrong, then unfold.
#
# <details><summary>Ranks, lines and cause</summary>
#
# Rank 0 waits in `barrier`, line 11. Rank 1 never gets there: it skipped the `if` and waits in `all_reduce`, line 14. Each waits for a call that the other will never make. This is a **deadlock**. A call that all ranks must make does not belong in a branch that only some of them take.
#
# </details>

# %%
import sys

views.waits(sys.last_value.run)  # Python keeps the last error here, and the error keeps its Run

# %% [markdown]
# ## Complete it
#
# Work out `RANK` from a rank's place. `GROUP_RANK` is the number of its node. You are done when `mine` and `RANK` agree on all four ranks.

# %%
# %%ranks -n 4 --nnodes 2 --engine torchrun
import os
from ddp_lessons.worker import record

local_rank = int(os.environ["LOCAL_RANK"])
per_node = int(os.environ["LOCAL_WORLD_SIZE"])
# 1. Which node is this?
node = 0  # your line
# 2. How many ranks stand before mine?
mine = local_rank  # your line
record("place", mine=mine, RANK=int(os.environ["RANK"]))

# %% [markdown]
# <details><summary>The two lines</summary>
#
# `node = int(os.environ["GROUP_RANK"])` and `mine = node * per_node + local_rank`
#
# </details>

# %% [markdown]
# ## Exercise
#
# [One function, two machines](../exercises/03_rank_and_world_size.ipynb) · 8 min · checked on one machine and on two: devices, shards, and who writes.

# %% [markdown]
# ## What you know now
#
# The same three questions.

# %%
questions("03_rank_and_world_size", after=None)  # run, put your letters in, run again

# %% [markdown]
# ## Without scrolling
#
# 1. When are `RANK` and `LOCAL_RANK` the same?
# 2. `if rank == 0:` with a `barrier()` inside. What happens on the other ranks?
#
# <details><summary>Answers</summary>
#
# 1. On the first node. If there is only one node, for all ranks.
# 2. They pass it by. Rank 0 waits for them in vain.
#
# </details>

# %% [markdown]
# ## Checkpoint: lessons 00 to 03
#
# Ten minutes, without scrolling. Write, then unfold.
#
# 1. A script on 4 ranks prints one line and records one value. How many lines and how many values are in its Run?
# 2. Rank 0 loads a list. Rank 1 prints its length. What happens?
# 3. One process trains with batch size 64. You move to 4 DDP ranks and want the same global batch. What is `batch_size` on each rank?
# 4. Two ranks share a step. Why do both end with the same model?
# 5. `init_process_group` has not returned for five minutes. Name two causes.
# 6. 3 nodes with 4 GPUs each, one rank per GPU. What are `WORLD_SIZE`, `LOCAL_WORLD_SIZE`, and the `LOCAL_RANK` of rank 9?
#
# <details><summary>Answers</summary>
#
# 1. Four and four: every rank runs the whole script.
# 2. `NameError` on rank 1. Its memory has no such list.
# 3. 64 / 4 = 16.
# 4. They start from the same weights and average their gradients at every step.
# 5. A rank was never started or has died; `WORLD_SIZE` is too large; a wrong address or a firewall; only one process was started.
# 6. 12 and 4. Ranks 8 to 11 are on the third node, so rank 9 has local rank 1.
#
# </details>

# %% [markdown]
# ## In your terminal
#
# ```
# .venv/bin/torchrun --nproc-per-node 4 ddp_lessons/scripts/03_rank_and_world_size/who.py
# ```
#
# For two real machines, the same command runs on each, with `--nnodes 2 --rdzv-backend c10d` and one `--rdzv-endpoint`, such as `node0:29400`, that both can reach.

# %% [markdown]
# ## In practice
#
# - **On NCCL.** Call `torch.cuda.set_device(local_rank)` and pass `device_id=` to `init_process_group`. Otherwise a later `.to("cuda")` means `cuda:0` on every rank. The cell under *Break it* asks for the CPU because NCCL [builds its barrier from an all-reduce](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/distributed/distributed_c10d.py): the two different calls may pair up there and give a wrong sum.
# - **device_ids.** `DDP(model, device_ids=[local_rank])` names the one GPU of this rank: the local rank again, not the rank.
# - **Many machines.** `torchrun` sets the four variables of the table on every node. So a script should read them. Computing them, as above, is for understanding only.
# - **Fine print.** If each node has a disk of its own, let local rank 0 prepare the file there. Checkpoints are different: one writer in all.

# %% [markdown]
# Next: [Move tensors between ranks](04_collectives.ipynb)
