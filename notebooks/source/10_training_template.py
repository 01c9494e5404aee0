# %% [markdown]
# # Train so that a kill costs nothing
#
# You will take home a training script, kill it in mid-epoch, and see it end as if nobody had; then take its parts away, one at a time.
#
# 45 min · 2 ranks on any laptop · needs 07, 09 · new terms: training state, exact resume, atomic write

# %% [markdown]
# ## Recall
#
# 1. 1,408 samples, a global batch of 64. How many steps make an epoch on 2 ranks, and on 4?
# 2. `no_sync()`: around what?
# 3. Rank 0 alone calls a function. When do the others wait for ever?
#
# <details><summary>Answers</summary>
#
# 1. 22 on both.
# 2. Forward and backward.
# 3. When there is a collective in it.
#
# </details>

# %% [markdown]
# ## What you know already
#
# Three questions, one minute.

# %%
from ddp_lessons import questions

questions("10_training_template", before=None)  # run, put your letters in, run again

# %% [markdown]
# The lines of lesson 01 that this lesson explains: the seed, and what rank 0 says.

# %%
from ddp_lessons import WorkerError, compare, launch, show, views

show("01_why_ddp/ddp.py", light=["manual_seed", "if rank == 0", "print("])

# %% [markdown]
# ## The script to copy
#
# [train.py](../ddp_lessons/scripts/10_training_template/train.py) uses nothing of this course. It runs under `torchrun`, under `launch()`, and as `python train.py`. Most of it you know; the lit lines are new:
#
# | part | lesson |
# |---|---|
# | device, process group | 02, 03 |
# | sampler, `set_epoch`, a test set without padding | 07 |
# | DDP; micro-batches (parts of a step) under `no_sync` | 06, 09 |
# | sums of counts, reduced | 04, 07 |
# | seeds, checkpoint, log, an agreed stop | this one |

# %%
new = ["_seed(args", "seed=args", "exists()", "saved[", "rest =", "late =", "(late", "save(state"]
show("10_training_template/train.py", light=new)

# %%
import json
import shutil
import tempfile
from pathlib import Path

import torch

folder = Path(tempfile.mkdtemp())  # for checkpoints and logs


# %%
def start(script, name, *more, world_size=2, device="auto"):
    args = ["--out", folder / name, "--epochs", 4, "--every", 4, *more]
    try:
        return launch(f"10_training_template/{script}.py", world_size, args=args, device=device)
    except WorkerError as error:
        return error.run


# %%
def log(name):
    return [json.loads(line) for line in (folder / name / "log.jsonl").open()]


start("train", "whole")
last = log("whole")[-1]
{"lines": len(log("whole")), "step": last["step"], "accuracy": round(last["accuracy"], 1)}

# %% [markdown]
# Rank 0 has written a line to the log and a checkpoint every 4 steps, and at the end of each epoch.

# %% [markdown]
# ## Equal seeds or different ones?
#
# "Seed all ranks alike", say some posts; "add the rank", say others. `seeds.py` tries `one` seed, the `rank` as seed, and `both`, as `train.py` does.

# %%
show("10_training_template/seeds.py", light=["equal, own =", "manual_seed", "DistributedSampler("])

# %% [markdown]
# > **Guess.** With `one` seed, do the ranks drop different units, as their samples are different? True or False?

# %%
guess = None  # True or False
differ = {}
for way in ("one", "rank", "both"):
    run = launch("10_training_template/seeds.py", args=[way])
    equal = {x: run.values(x)[0] == run.values(x)[1] for x in ("weights", "dropout")}
    print(way, "· equal:", equal, "· samples lost:", 8 - len(set(sum(run.values("shard"), []))))
    differ[way] = not equal["dropout"]
compare(guess, differ["one"])

# %% [markdown]
# What all ranks share needs an equal seed: the first weights, and the order that the sampler deals out. DDP would mend the weights, with rank 0's. Nobody mends the shards: `rank` loses samples. What is drawn for a rank's own samples needs a seed of its own: dropout, augmentation. No error says so.

# %% [markdown]
# ## Kill it
#
# `altered.py` runs `train.py`. Here rank 1 sends itself SIGKILL, which nobody can catch, in step 39, the 17th of epoch 1.
#
# > **Guess.** After which step was the last checkpoint?

# %%
guess = None  # your number
print(start("altered", "killed", "--kill", 1, 39).report.partition("\n")[0])
saved = torch.load(folder / "killed" / "checkpoint.pt", map_location="cpu")
compare(guess, saved["step"])

# %% [markdown]
# Everything that the next step depends on is the **training state**. The checkpoint holds it:
#
# | entry | without it |
# |---|---|
# | `model`: the inner model | training starts anew |
# | `optimizer` | no momentum |
# | `scheduler` | its curve starts anew |
# | `step`: the sampler's position | the epoch starts anew |
# | `generators` of random numbers, one per rank | other dropout |
# | `log_size` | lines appear in the log twice |
#
# Now the same command again. If the run ends bit for bit like one that nobody killed, that is an **exact resume**.

# %%
marks = {"killed": 39, "restored": saved["step"]}
shutil.copytree(folder / "killed", folder / "all restored")
start("train", "all restored")
views.resumed(log("whole"), {"all restored": log("all restored")}, **marks)

# %% [markdown]
# The same bits, in losses and parameters ([tests](../tests/resume/test_exact_resume.py), with 1, 2 and 4 ranks).
#
# <details><summary>Why is there a rehearsal in the script?</summary>
#
# After the first backward DDP sorts its buckets anew (lesson 08), and a sum of three floats depends on their order. A resumed run would begin in the first order again. On 2 ranks nobody would notice: a + b = b + a.
#
# </details>

# %% [markdown]
# ## Contrast: one part less
#
# Four runs go on from that checkpoint, each without one part: `optimizer`, `scheduler`, `position` or `generators`.
#
# > **Guess.** In how many of the four does any rank report an error, or a warning? Vote, discuss, vote again.

# %%
guess = None  # your number
told, parts = [], ("optimizer", "scheduler", "position", "generators")
for part in parts:
    shutil.copytree(folder / "killed", folder / f"without {part}")
    run = start("altered", f"without {part}", "--without", part)
    told += [part] if run[0].stderr + run[1].stderr else []
compare(guess, len(told))

# %%
names = ["all restored", *(f"without {part}" for part in parts)]
views.resumed(log("whole"), {name: log(name) for name in names}, **marks)

# %% [markdown]
# All four train on, none as it would have. In a real run there is no other to compare with: test a resume with a kill of your own.

# %% [markdown]
# ## Whole or not at all
#
# A kill may come while the checkpoint is written. An **atomic write** leaves the old file or the new one, never a half. `save` in `train.py` writes under another name, then renames, which is one step ([documentation](https://docs.python.org/3/library/os.html#os.replace)).

# %% [markdown]
# > **Guess.** Rank 0 dies half-way through its third checkpoint. After which step does the next run go on?

# %%
guess = None  # your number
start("altered", "torn", "--tear", 3, device="cpu")
torn = folder / "torn" / "checkpoint.pt"
compare(guess, torch.load(torn, map_location="cpu")["step"])

# %%
start("altered", "in place", "--tear", 3, "--without", "rename")
lost = start("train", "in place")
print("goes on:", lost.ok, "| fails at:", lost[0].failure.frames[-1][3])
places = set()
torch.load(torn, map_location=lambda storage, place: places.add(place))
places

# %% [markdown]
# In place, half a file has replaced the good one: the training is lost.
#
# `places`: where the tensors were, as the file says. Rank 0 with a GPU writes `cuda:0`, and without `map_location` every rank would load them there ([documentation](https://docs.pytorch.org/docs/stable/generated/torch.load.html)). From the CPU, `load_state_dict` copies to each rank's own device.

# %% [markdown]
# ## Another number of ranks
#
# `--minutes 0` stops all ranks at the first checkpoint. One rank goes on alone.
#
# > **Guess.** With `--dropout 0`: does it end with the loss of two ranks, to three decimals? True or False?

# %%
guess = None  # True or False
start("train", "no dropout", "--dropout", 0)
for name, drop in {"whole": 0.2, "no dropout": 0}.items():
    start("train", f"{name}, moved", "--dropout", drop, "--minutes", 0)
    start("train", f"{name}, moved", "--dropout", drop, world_size=1)
    gap = abs(log(f"{name}, moved")[-1]["loss"] - log(name)[-1]["loss"])
    print(f"dropout {drop}, equal to three decimals: {gap < 0.0005}")
compare(guess, gap < 0.0005)

# %% [markdown]
# `--batch` is global, and the sampler deals from one order. So each step has the same 64 samples on 1, 2 or 4 ranks, and the position holds. Sums are rounded differently: close, not equal. Generators belong to ranks, so dropout differs. With a batch size per rank, steps and position would change, too.

# %% [markdown]
# ## Break it: who waits?
#
# Each rank stops when its own loss is small. Then, in `train.py`, rank 0 alone validates. Name ranks, lines and cause.

# %%
show("10_training_template/own_stop.py", light=["target =", "loss =", "loss.item()", "break", "barrier"])

# %% tags=["raises-exception"]
launch("10_training_template/own_stop.py", device="cpu", timeout=4)

# %% tags=["raises-exception"]
alone = ["--without", "everybody", "--out", folder / "alone", "--epochs", 1]
launch("10_training_template/altered.py", args=alone, device="cpu")

# %% [markdown]
# <details><summary>Ranks, lines and cause</summary>
#
# - Rank 0 left after 2 steps and waits in the barrier, line 27. Rank 1 waits in its third backward, line 22. In `train.py` one rank whose time is up stops all, by `all_reduce` with `MAX`: each leaves after the same step.
# - Rank 0, line 44, reduces its counts in `evaluate`. Rank 1, line 155, is already checking the clock. A function with a collective in it is for all ranks.
#
# </details>

# %% [markdown]
# ## Claim check: the template of popular posts
#
# `popular.py` was written for this lesson, with the mistakes of several posts. Find the three that raise, then see them mended.

# %%
show("10_training_template/popular.py")

# %%
path, text = folder / "popular.py", "\n".join(show("10_training_template/popular.py").lines)
mends = {"": "", "[rank]": "[0]", ", device_ids=[0]": "", "batch in": "images, labels in"}
for old, new in mends.items():
    path.write_text(text := text.replace(old, new))
    try:
        print("runs:", *(rank.stdout.splitlines() for rank in launch(path, device="cpu")))
    except WorkerError as error:
        print(str(error).split("\n")[0][:100])

# %% [markdown]
# Now it runs. Write down five faults left, then unfold.
#
# <details><summary>Silent faults, and their mends in <code>train.py</code></summary>
#
# - Each rank prints the loss of its own last batch: two numbers for one epoch. Reduce sums; rank 0 prints.
# - All ranks write `model.pt`, in place. Rank 0 saves, atomically.
# - Its names are the wrapper's (`module.`). Save the inner model.
# - No `set_epoch`: the same order in each epoch.
# - One seed for all: dropout would be equal.
# - No resume.
#
# </details>

# %% [markdown]
# ## Complete it
#
# A rank that goes on must draw what it would have drawn. Two lines are missing. You are done when both ranks record True.

# %%
# %%ranks -n 2
import torch
import torch.distributed as dist
from ddp_lessons.worker import process_group, record

with process_group():
    torch.manual_seed(dist.get_rank())
    states = [None] * dist.get_world_size()
    # 1. Gather the states of all ranks' generators, for the checkpoint.
    ...  # your line
    wanted = torch.rand(2)
    # 2. The rank is started again: give it its own state.
    ...  # your line
    record("drawn", equal=torch.equal(torch.rand(2), wanted))

# %% [markdown]
# <details><summary>The two lines</summary>
#
# `dist.all_gather_object(states, torch.get_rng_state())` and `torch.set_rng_state(states[dist.get_rank()])`
#
# </details>

# %% [markdown]
# ## Exercise
#
# - [Stop together](../exercises/10_training_template.ipynb) · 10 min · checked on real ranks.
# - [Port a script](../exercises/10_training_template.ipynb) · 30 min · compared with one process.

# %% [markdown]
# ## What you know now
#
# The same three questions.

# %%
questions("10_training_template", after=None)  # run, put your letters in, run again

# %% [markdown]
# ## Without scrolling
#
# 1. Which seeds must be equal on all ranks, and which must differ?
# 2. A script saves model and epoch, at the end of each epoch. Name three things that a resumed run does differently.
#
# <details><summary>Answers</summary>
#
# 1. Equal: first weights, the sampler's. Different: dropout, augmentation.
# 2. Momentum, learning rate, dropout; and it repeats the epoch in which it was killed.
#
# </details>

# %% [markdown]
# ## In your terminal
#
# Press Ctrl-C midway (long tracebacks come), then run it again.
#
# ```
# .venv/bin/torchrun --nproc-per-node 2 ddp_lessons/scripts/10_training_template/train.py --out build/run --epochs 500
# ```

# %% [markdown]
# ## In practice
#
# - **On NCCL.** Exact resume has been seen on gloo only. On CUDA the script asks for deterministic kernels; an operation that has none [raises](https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html).
# - **Many machines.** All must see the folder `--out`. If not, `train.py` stops. It also stops if the checkpoint has other arguments.
# - **Fine print.** Identical bits need identical machines and versions ([documentation](https://docs.pytorch.org/docs/stable/notes/randomness.html)). Python, NumPy and loader workers have generators, too: what your data uses belongs to the training state. Save large models less often. BatchNorm's buffers are rank 0's (lesson 09).

# %% [markdown]
# Next: [Start one script in every way](11_launchers.ipynb)
