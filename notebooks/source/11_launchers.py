# %% [markdown]
# # Start one script in every way
#
# You will start ranks with `mp.spawn`, with `torchrun` and on a cluster, read what each of them tells a rank, and let a group that has lost a rank go on from its checkpoint.
#
# 40 min · 2 ranks on any laptop, 4 in single cells · needs 02, 03, 10 · new terms: launcher, spawn, agent, attempt, job file

# %% [markdown]
# ## Recall
#
# 1. Which variable says how many ranks there are on all nodes?
# 2. Two ranks on each of two nodes. What is `LOCAL_RANK` on rank 3?
# 3. One of two ranks was never started. What does the other one do in `init_process_group`?
#
# <details><summary>Answers</summary>
#
# 1. `WORLD_SIZE`.
# 2. `1`.
# 3. It waits, up to the timeout.
#
# </details>

# %% [markdown]
# ## What you know already
#
# Three questions, one minute.

# %%
from ddp_lessons import questions

questions("11_launchers", before=None)  # run, put your letters in, run again

# %% [markdown]
# These are the lines of lesson 01 that this lesson explains: somebody has to set these variables.

# %%
from ddp_lessons import compare, launch, show, submit, views

show("01_why_ddp/ddp.py", light="os.environ")

# %% [markdown]
# ## A script that starts its own ranks
#
# Whatever starts the ranks is the **launcher**. Most tutorials begin with a script that is its own launcher: `mp.spawn` starts the processes. To **spawn** a process is to start a new Python that imports the script again and then calls one function of it.

# %%
show("11_launchers/spawn.py", light=["def demo", "MASTER", "init_process", "__main__", "mp.spawn"])

# %% [markdown]
# `engine="python"` runs a script once, as `python spawn.py` does. What its ranks do comes back as usual.
#
# > **Guess.** `demo` has three parameters, and `args` holds two. What is the first argument, on rank 1?

# %%
guess = None  # its value
spawned = launch("11_launchers/spawn.py", engine="python", device="cpu")
compare(guess, spawned.values("rank")[1])

# %% [markdown]
# `mp.spawn` calls `demo(i, *args)` in process `i`. This first argument is all that a process is told about who it is. The rest the script does itself: address, port, `rank=`, `world_size=`.
#
# <details><summary>Why are the last lines under <code>if __name__ == "__main__":</code>?</summary>
#
# Each new Python imports the file, under another name. Without that line it would spawn, too. Python stops that with a `RuntimeError`.
#
# </details>

# %% [markdown]
# ## What torchrun tells a rank
#
# `torchrun` starts the whole script, once for each rank. Its own process on a node, which starts the ranks there and watches them, is the **agent**.

# %%
show("11_launchers/place.py")

# %% [markdown]
# > **Guess.** `place.py` looks for four variables; under `torchrun` all are there. How many does `mp.spawn` set?

# %%
guess = None  # your number
by_torchrun = launch("11_launchers/place.py", engine="torchrun")
compare(guess, sum(value is not None for value in spawned[1].records[0].values.values()))

# %% [markdown]
# ## The launcher before torchrun
#
# Older posts start their script like this:
#
# ```
# CUDA_VISIBLE_DEVICES=2,3 python -m torch.distributed.launch --nproc_per_node=2 train.py
# ```
#
# `old.py` does the same with `place.py`.

# %%
show("11_launchers/old.py", light=["command", "warning"])

# %%
cards = {"CUDA_VISIBLE_DEVICES": "2,3"}
old = launch("11_launchers/old.py", engine="python", env=cards)
ways = {"mp.spawn": spawned, "torchrun": by_torchrun, "torch.distributed.launch": old}
print(old.starter.stdout, f"\n{'what rank 1 finds':28}", *(f"{way:10}" for way in ways))
for name in by_torchrun[1].records[0].values:
    print(f"{name:28}", *(f"{run.values(name)[1]!s:10}" for run in ways.values()))
print("CUDA_VISIBLE_DEVICES", *old.values("gpus"), "· arguments", *old.values("arguments"))

# %% [markdown]
# The old launcher is `torchrun` with one addition: `--local-rank` among the arguments, which each script had to parse. It is on its way out: the rest of the warning asks scripts to read `LOCAL_RANK` instead.
#
# Variables in front of a command are part of its environment, which every process hands down. Both ranks see GPUs 2 and 3; the local rank chooses between them (lesson 03).

# %% [markdown]
# ## Claim check: "give your parser an argument --local_rank"
#
# Posts from before torch 2.0 say so. Here is such a parser, with the argument that rank 1 gets today.
#
# > **Guess.** Which local rank does it find?

# %%
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=0)
known, unknown = parser.parse_known_args(["--local-rank=1"])
guess = None  # your number
compare(guess, known.local_rank)

# %% [markdown]
# A dash is not an underscore ([source](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/distributed/launch.py)). Every rank would take the GPU of local rank 0. With `parse_args` the script stops with "unrecognized arguments". Read `os.environ["LOCAL_RANK"]`: that works under both.

# %% [markdown]
# ## Who started whom
#
# Each rank has noted the processes above it. By default `launch()` has a worker server: a process that has imported torch and forks the ranks, which is quicker. The last run acts as two machines, with an agent on each.

# %%
ways = {"default": launch("11_launchers/place.py"), **ways}
ways.pop("torch.distributed.launch")
ways["two nodes"] = launch("11_launchers/place.py", world_size=4, nnodes=2, engine="torchrun")
views.started(ways)

# %% [markdown]
# The process directly above the ranks is the one that sees them end. What it does then is the next question.

# %% [markdown]
# ## Contrast: a rank dies, with and without a restart
#
# `restart.py` counts four epochs and saves after each. In epoch 2, rank 1 is killed.

# %%
show("11_launchers/restart.py", light=["saved =", "attempt", "first_try", "kill(", "replace("])

# %% [markdown]
# With `--max-restarts 1`, `torchrun` may start again what has died. Each start is an **attempt**, counted from 0 in `TORCHELASTIC_RESTART_COUNT`.
#
# > **Guess.** How many ranks does `torchrun` start in both attempts together? Vote, discuss, vote again.

# %%
from tempfile import TemporaryDirectory

guess = None  # your number
folder = TemporaryDirectory()
saved = [folder.name + "/epochs.json"]
again = launch("11_launchers/restart.py", engine="torchrun", max_restarts=1, args=saved)
compare(guess, sum(map(len, [*again.earlier, again.ranks])))

# %%
views.started(again)

# %%
again

# %% [markdown]
# The survivor cannot go on in a group that has lost a rank. So the agent ends it, and starts all ranks anew. The new processes know nothing: they go on at epoch 2 because the file says so. The total is that of four whole epochs: none is lost, none counts twice. A restart without a checkpoint begins at epoch 0.

# %% [markdown]
# ## Break it
#
# The same script, a new file, no restart.

# %% tags=["raises-exception"]
saved = [folder.name + "/other.json"]
launch("11_launchers/restart.py", args=saved)

# %% [markdown]
# Name rank, line and cause, and what is left to go on with. Then unfold.
#
# <details><summary>Rank, line and cause</summary>
#
# Rank 1 was killed (SIGKILL): its last call was the barrier, line 31, after epoch 1. Rank 0 waited for it in the all-reduce of epoch 2, line 25. Memory is only the usual reason; here it was line 23. The file is left: it says that two epochs are done. Started again by hand (next cell), the script goes on there, as it did under `torchrun`.
#
# </details>

# %%
launch("11_launchers/restart.py", args=saved).values("first_epoch")

# %% [markdown]
# ## On a cluster: Slurm
#
# On a shared cluster you start nothing yourself. You submit a **job file** with `sbatch`, and Slurm runs it when nodes are free. Where this computer has Slurm, the cell sends the job too.

# %%
submit("11_launchers/place.py", world_size=4, nnodes=2)

# %% [markdown]
# `srun` starts one `torchrun` on each node. From there on everything is as above, and the script is the same. For GPUs the file needs one line more: `#SBATCH --gpus-per-node=2`.

# %% [markdown]
# ## On Windows: gloo, a file, spawn
#
# Windows has gloo and [no NCCL](https://docs.pytorch.org/docs/stable/distributed.html), and it knows only one way to start a process: spawn. Ranks can meet without a port, too: in a file that all of them know and that is new. (This course has not been run on Windows.)

# %%
# %%ranks -n 2
import os
import tempfile
from pathlib import Path
import torch.distributed as dist
from ddp_lessons.worker import record

path = Path(tempfile.gettempdir()) / f"meet_{os.environ['MASTER_PORT']}"  # new in each run
store = dist.FileStore(str(path), 2)
dist.init_process_group("gloo", store=store, rank=int(os.environ["RANK"]), world_size=2)
record("met", ranks=dist.get_world_size())
dist.barrier()
if dist.get_rank() == 0:
    path.unlink()

# %% [markdown]
# ## Complete it
#
# One script for every launcher reads its place from the environment. Under `mp.spawn`, somebody must put it there: fill in two lines. You are done when each rank records its own two numbers.

# %%
# %%ranks -n 2 --engine python
from os import environ
import torch.multiprocessing as mp
from ddp_lessons.worker import record


def start(rank):
    ...  # 1. your line: the rank, where a script looks for it under torchrun
    ...  # 2. your line: its number on this node
    record("place", RANK=environ.get("RANK"), LOCAL_RANK=environ.get("LOCAL_RANK"))


if __name__ == "__main__":
    mp.spawn(start, nprocs=2)

# %% [markdown]
# <details><summary>The two lines</summary>
#
# `environ["RANK"] = str(rank)` and `environ["LOCAL_RANK"] = str(rank)`
#
# </details>

# %% [markdown]
# ## What you know now
#
# The same three questions.

# %%
questions("11_launchers", after=None)  # run, put your letters in, run again

# %% [markdown]
# ## Without scrolling
#
# 1. A script reads `RANK`. Started with `python script.py`, it ends in a `KeyError`. Why?
# 2. Rank 5 of 8 dies, one restart is allowed. Which ranks are started again, and what do they still know?
#
# <details><summary>Answers</summary>
#
# 1. No launcher has set it.
# 2. All eight. Only what is in a file.
#
# </details>

# %% [markdown]
# ## In your terminal
#
# ```
# .venv/bin/python ddp_lessons/scripts/11_launchers/spawn.py
# export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1
# .venv/bin/torchrun --nproc-per-node 2 --max-restarts 1 ddp_lessons/scripts/11_launchers/restart.py
# ```
#
# The last one leaves `epochs.json` behind: remove it before the next try. *In practice* says what the second is for.

# %% [markdown]
# ## In practice
#
# - **On NCCL.** The same launchers and the same variables. A process that has used CUDA [must not be forked](https://docs.pytorch.org/docs/stable/notes/multiprocessing.html): the child could not use it. `mp.spawn` does not fork, and the worker server never uses CUDA.
# - **Many machines.** The same `torchrun` line on each, as in the job file: with `--rdzv-backend=c10d`, and one `--rdzv-endpoint` that all can reach. The default backend wants another `--node-rank` on each.
# - **Restarts.** In torch 2.13 all attempts under `torchrun` meet in one store, and the new ranks find addresses of the dead ones in it ([report](https://github.com/pytorch/pytorch/issues/135712)). `restart.py` under bare `torchrun`, 4 ranks on gloo, failed in 14 of 14 tries. With `TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1`, which gives each attempt a store of its own, all 14 went well. `launch()` keeps the attempts apart itself.
# - **Fine print.** A restart cures what happens once. A mistake in the script comes back in each attempt.
