# %% [markdown]
# # Start real workers from a notebook
#
# You will start processes from this notebook, read what each of them did, and see that they share no memory.
#
# 25 min · 2 ranks on any laptop · needs no other lesson · new terms: worker, rank, world size, record
#
# Run each cell with Shift+Enter, from top to bottom. The page comes with the outputs of another machine. To guess before you see, first choose *Edit, Clear Outputs of All Cells*, here and in every lesson.

# %% [markdown]
# ## What you know already
#
# Three questions, one minute. Put letters in place of `None`. They are kept beside this notebook; its end asks again.

# %%
from ddp_lessons import questions

questions("00_start_here", before=None)  # run, put your letters in, run again

# %% [markdown]
# ## Check this machine
#
# This course starts one script in several processes at once. Each such process is a **worker**, and its number, counted from 0, is its **rank**. First see whether two of them can talk to each other here.

# %%
from ddp_lessons import check_machine, compare, launch, show, views

check_machine()

# %% [markdown]
# The last table says which lessons use NCCL on this machine. NCCL is the library that moves data between GPUs. Without GPUs, a library called gloo does the same work on the CPU. You learn the same things on both.

# %% [markdown]
# ## Launch a script on two ranks
#
# The number of workers is the **world size**. A worker finds its rank and the world size in its environment variables.

# %%
show("00_start_here/hello.py")

# %% [markdown]
# > **Guess.** The script prints one line. How many lines do 2 ranks print together?

# %%
guess = None  # your number
run = launch("00_start_here/hello.py", world_size=2)
compare(guess, sum(len(rank.stdout.splitlines()) for rank in run))

# %%
run

# %% [markdown]
# Every rank ran the whole script, so every rank printed its line.
#
# <details><summary>Which process ran what?</summary>
#
# `launch()` started two new processes. The kernel, which is the process behind this notebook, ran no line of the script. It waited, collected what the workers printed, and showed it in rank order. Then the workers were gone.
#
# </details>

# %% [markdown]
# ## Read a Run
#
# What `launch()` returns is a `Run`: plain data, one entry for each rank. You will read one in every lesson.

# %%
run[1].stdout

# %% [markdown]
# Printed text is hard to compute with. So the script also calls `record(name, **values)`. It sends a **record** back to this notebook: the name of a moment, and some named values. `run.values("square")` lists the last value that each rank recorded under the name `square`, in rank order.

# %%
run.values("square")

# %%
run.records

# %% [markdown]
# ## One script, two memories
#
# In one process, a variable is there for every line that follows. With two ranks, each line makes one variable in each process. Here, only rank 0 loads the data.

# %%
show("00_start_here/memory.py", light=["x =", "if rank"])

# %% [markdown]
# > **Guess.** The last line adds up `x`. On rank 0 the total is 6. What is it on rank 1? Vote, discuss with a neighbour, vote again. (Alone: write down your reason first.)

# %%
guess = None  # your number
run = launch("00_start_here/memory.py", world_size=2)
compare(guess, run.values("total")[1])

# %%
views.memories(run, "x")

# %% [markdown]
# An assignment changes the memory of the rank that runs it, and no other.
#
# <details><summary>Does this hold on one laptop, too?</summary>
#
# Yes. Two processes on one machine are as separate as two on different machines. The operating system keeps their memories apart. That is why the same script also runs on a cluster.
#
# </details>

# %% [markdown]
# ## Contrast: load on one rank, load on every rank
#
# A cell whose first line is `%%ranks` runs its own code on several ranks: `-n 2` on two. `-o one` keeps the Run under the name `one`. The code goes into a file first, so the ranks see nothing of this notebook: no variable, no import. (The import in the first cell makes `%%ranks` known. After a restart of the kernel, run that cell again.)

# %%
# %%ranks -n 2 -o one
import os
from ddp_lessons.worker import record

x = [0, 0, 0]
if os.environ["RANK"] == "0":
    x = [1, 2, 3]
record("x", total=sum(x))

# %%
# %%ranks -n 2 -o every
from ddp_lessons.worker import record

x = [1, 2, 3]
record("x", total=sum(x))

# %% [markdown]
# A rank must load what it uses, or another rank must send it.

# %% [markdown]
# ## Rank order is not time order
#
# A table of a Run lists rank 0 first. In the next script, rank 0 sorts three million numbers. The other rank sorts thirty.

# %%
show("00_start_here/order.py", light="numbers =")

# %% [markdown]
# > **Guess.** Which rank is ready last?

# %%
guess = None  # 0 or 1
run = launch("00_start_here/order.py", world_size=2)
last = max(run.records, key=lambda record: record.time)
compare(guess, last.rank)

# %%
views.moments(run, "ready")

# %% [markdown]
# Each rank runs at its own pace. The rows are sorted by rank only so that you can find them.

# %% [markdown]
# ## Break it
#
# Each rank reads a file of its own. Run the cell. From the report, name the rank, the line and the cause. Then unfold.

# %% tags=["raises-exception"]
launch("00_start_here/crash.py", world_size=2)

# %% [markdown]
# <details><summary>Rank, line and cause</summary>
#
# Rank 1, line 10: `files[1]` asks for a second file, and the list has one. Rank 0 was not at fault. `launch()` names the guilty rank first, because a rank that fails often pulls others down with it.
#
# </details>
#
# If a cell takes too long, press Stop (■): all ranks end, and the message says where each one stood. After 60 seconds a run ends by itself; `timeout=` changes that.

# %% [markdown]
# ## Complete it
#
# Replace each `None` with a whole number that the script finds out. You are done when the table reads 0 and 2 for rank 0, and 1 and 2 for rank 1.

# %%
# %%ranks -n 2 -o mine
import os
from ddp_lessons.worker import record

# 1. Who am I?
my_rank = None  # your line
# 2. How many are we?
size = None  # your line
# 3. Tell the notebook.
record("me", my_rank=my_rank, size=size)

# %% [markdown]
# <details><summary>The two lines</summary>
#
# `my_rank = int(os.environ["RANK"])` and `size = int(os.environ["WORLD_SIZE"])`
#
# </details>

# %% [markdown]
# ## How the course fits together
#
# - **Lessons** are in `notebooks/`. Each one asks three questions at its start, and again at its end, before two new ones. From lesson 02 on, a lesson starts with questions about earlier ones.
# - **Exercises** are in `exercises/`, from lesson 02 on. A check runs your code on real ranks and says what is wrong with it.
# - **Solutions** are in `solutions/`, under the same name as the exercise.
# - **Scripts** that the ranks run are in `ddp_lessons/scripts/`.
#
# A lesson that has an exercise links to it.

# %% [markdown]
# ## What you know now
#
# The same three questions.

# %%
questions("00_start_here", after=None)  # run, put your letters in, run again

# %% [markdown]
# ## Without scrolling
#
# 1. A script sets `x = 5` on rank 0 only. What does rank 1 see in `x`?
# 2. Two ranks print one line each. In which order does a Run show the lines, and in which order were they printed?
#
# <details><summary>Answers</summary>
#
# 1. Whatever rank 1 itself put there. If it put nothing there, a `NameError`.
# 2. Shown in rank order. Printed in any order: each rank runs at its own pace.
#
# </details>

# %% [markdown]
# ## In your terminal
#
# Outside of notebooks, `torchrun` starts the ranks. It comes with PyTorch. From the root of the course:
#
# ```
# .venv/bin/torchrun --nproc-per-node 2 ddp_lessons/scripts/00_start_here/hello.py
# ```
#
# Nobody collects records there, so each one is printed, as a line of JSON. `torchrun` adds a note about `OMP_NUM_THREADS`. This takes some seconds, because `torchrun` imports PyTorch first. `launch()` is faster: it copies its workers from one process that has imported PyTorch already.

# %% [markdown]
# ## In practice
#
# - **On NCCL.** Starting processes is the same. What changes is how they talk: see the lesson on process groups.
# - **Many machines.** So far, no script could tell that a rank is on another machine.
# - **Fine print.** One record may hold 1 MB. Record a sum, a norm or a slice, not a whole model.

# %% [markdown]
# Next: [Train one model on two ranks](01_why_ddp.ipynb)
