# %% [markdown]
# # Train one model on two ranks
#
# You will train a network in one process and then on two ranks, see which lines change, and read where the memory goes.
#
# 30 min · 2 ranks on any laptop · needs 00 · new terms: DDP, replica, global batch, DataParallel

# %% [markdown]
# ## What you know already
#
# Three questions, one minute.

# %%
from ddp_lessons import questions

questions("01_why_ddp", before=None)  # run, put your letters in, run again

# %% [markdown]
# ## Train in one process
#
# Training on one GPU takes too long, and you have a second one. Before it can help, look at what one process does. You know this script: data, model, loss, optimizer, a loop. The data are 1,797 handwritten digits of 8 x 8 pixels. The last 389 are kept for the test.

# %%
from ddp_lessons import compare, launch, show, views

# %%
show("01_why_ddp/single.py")

# %%
single = launch("01_why_ddp/single.py", world_size=1)
single

# %% [markdown]
# ## The same training on two ranks
#
# Two processes can share each step: each takes half of the batch. Then both models must take the same step, or they drift apart. So the ranks average their gradients during each backward pass. PyTorch's `DistributedDataParallel`, **DDP** for short, does that. It wraps the model that each rank holds, its **replica**.
#
# The lines marked ▸ are new. Most of them name the lesson that explains them.

# %%
show("01_why_ddp/ddp.py", since="01_why_ddp/single.py")

# %% [markdown]
# > **Guess.** Each rank now trains on half of the samples. How many of the 389 test digits will two ranks get right? Look at the result of the single process first.

# %%
guess = None  # your number
double = launch("01_why_ddp/ddp.py", world_size=2)
compare(guess, double.values("right")[0])

# %%
single.values("steps"), double.values("steps")

# %% [markdown]
# The two ranks took the same steps as the single process, so they ended with the same model.
#
# <details><summary>Why the same?</summary>
#
# Three things had to agree. Both scripts start from the same random weights. At each step, the two halves together hold the same 64 samples that the single process sees. And the average of two half-batch gradients is the gradient of the whole batch, because the halves are equally large and the loss is a mean. Floating-point sums in another order differ in the last digits, so the two models are equal to about six digits, not bit by bit.
#
# </details>

# %% [markdown]
# <details><summary>Is it faster?</summary>
#
# Not here. The ranks share this computer's cores, and starting them takes longer than training. The gain comes when each rank has a GPU of its own, and half a batch takes much less time than the whole.
#
# </details>

# %% [markdown]
# ## What came before: DataParallel
#
# Old code uses `nn.DataParallel`. It has one process, which drives all GPUs from threads. In every step it
#
# 1. scatters the batch over all devices,
# 2. copies the model to every device,
# 3. runs the forward passes in threads,
# 4. gathers all outputs on device 0,
# 5. lets you compute the loss there,
# 6. and, after a backward pass on every device, adds up the gradients on device 0.
#
# `nn.DataParallel` needs GPUs. So the next script **rebuilds** these six steps with real tensors, on any machine, and counts what each device holds. It is not `nn.DataParallel` itself. Where there are two GPUs, it runs the real one as well and marks its measured peak, which includes the work space of CUDA's libraries.

# %%
show("01_why_ddp/data_parallel.py", light=["# 1.", "# 2.", "# 3.", "# 4.", "# 5.", "# 6."])

# %% [markdown]
# The model has 0.66 million parameters, and Adam keeps two numbers for each. The batch has 1,024 samples, with 1,024 outputs for each.
#
# > **Guess.** Both devices work on half of the batch. Does device 0 hold about as much as device 1, twice as much, or three times as much? Answer 1, 2 or 3. Vote, discuss, vote again.

# %%
guess = None  # your number
old = launch("01_why_ddp/data_parallel.py", world_size=1)
new = launch("01_why_ddp/ddp_bytes.py", world_size=2)
first, second = old.values("device_0")[0], old.values("device_1")[0]  # bytes
compare(guess, round(first / second))

# %%
views.bytes_per_device({"DataParallel, rebuilt": old, "DDP": new})

# %% [markdown]
# With DataParallel, device 0 fills up first, and the others have room left.
#
# <details><summary>What does DDP pay for the balance?</summary>
#
# Every rank holds its own optimizer state, and memory in which its gradients travel (the buckets). In total, DDP holds more. But no rank holds more than the others, so adding ranks never makes the first one overflow.
#
# </details>

# %% [markdown]
# ## Claim check: "10 GB on the first card, 4 GB on the others"
#
# Posts about DataParallel report such numbers. The six steps explain them. Take 8 cards, 1 GB of parameters, 1.75 GB of activations on each card, 2 GB of outputs for the whole batch, and the Adam optimizer. (The sizes are chosen to match; smaller parts are left out.)

# %%
cards, parameters, activations, outputs = 8, 1, 1.75, 2  # GB
gradients, adam, output_gradients = parameters, 2 * parameters, outputs
first = parameters + gradients + adam + activations + outputs + output_gradients
other = parameters + gradients + activations + outputs / cards
first, other

# %% [markdown]
# Only the first card holds optimizer state, and the outputs of the whole batch with their gradients.

# %% [markdown]
# ## Contrast: whose batch_size is it?
#
# In DataParallel there is one `DataLoader`. Its `batch_size` is the **global batch**: the samples of one optimizer step, over all devices. In DDP every rank has its own `DataLoader`, and a sampler that gives it its share of the samples.

# %%
show("01_why_ddp/steps.py", light=["loader =", "sizes ="])

# %% [markdown]
# > **Guess.** 64 samples, `DataLoader(batch_size=8)`. One process takes 8 steps for an epoch. How many steps does each of two DDP ranks take, if the sampler gives each rank half of the samples?

# %%
guess = None  # your number
one = launch("01_why_ddp/steps.py", world_size=1)
two = launch("01_why_ddp/steps.py", world_size=2)
compare(guess, two.values("steps")[0])

# %%
two

# %% [markdown]
# In DDP `batch_size` is per rank, so the global batch grows with the number of ranks.
#
# <details><summary>What does ddp.py do about it?</summary>
#
# It divides: `batch_size=64 // world_size`. Then the global batch stays 64. Whether to divide, or to let the batch grow and change the learning rate, is a question of its own.
#
# </details>

# %% [markdown]
# ## Break it
#
# Each rank reads one half of a new data set. Run the cell. Name the rank, the line and the cause, then unfold.

# %% tags=["raises-exception"]
launch("01_why_ddp/bad_column.py", world_size=2)

# %% [markdown]
# <details><summary>Rank, line and cause</summary>
#
# Rank 1, line 19: its inputs have 9 columns, the model takes 8. The second half was given one column too many. Rank 0 had good data.
#
# </details>

# %% [markdown]
# ## Complete it
#
# Two lines are missing. You are done when both ranks record a gradient of 1.5, the mean of 1 and 2. `process_group()` brings the ranks together and names each one's device; lesson 02 opens it up.

# %%
# %%ranks -n 2 -o mine
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from ddp_lessons.worker import process_group, record

with process_group() as device:
    x = torch.ones(1, 1, device=device)  # your line: 1 on rank 0, 2 on rank 1
    layer = nn.Linear(1, 1, bias=False).to(device)
    model = layer  # your line: wrap it
    model(x).sum().backward()
    record("gradient", gradient=layer.weight.grad.item())

# %% [markdown]
# <details><summary>The two lines</summary>
#
# `x = torch.full((1, 1), dist.get_rank() + 1.0, device=device)` and `model = DDP(layer)`
#
# </details>

# %% [markdown]
# ## What you know now
#
# The same three questions.

# %%
questions("01_why_ddp", after=None)  # run, put your letters in, run again

# %% [markdown]
# ## Without scrolling
#
# 1. In `nn.DataParallel`, how many processes are there for four GPUs? In DDP?
# 2. Four DDP ranks use `DataLoader(batch_size=32)`. How large is the global batch?
#
# <details><summary>Answers</summary>
#
# 1. One process. In DDP, four.
# 2. 128 samples.
#
# </details>

# %% [markdown]
# ## In your terminal
#
# ```
# .venv/bin/torchrun --nproc-per-node 2 ddp_lessons/scripts/01_why_ddp/ddp.py
# ```

# %% [markdown]
# ## In practice
#
# - **Who moves the inputs?** `ddp.py` moves them itself, with `.to(device)`. With `device_ids`, a list with the number of this rank's GPU, DDP also moves tensors that arrive on the CPU to that GPU ([source](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/nn/parallel/distributed.py), `_pre_forward`). Without `device_ids`, nobody does. `nn.DataParallel` always moves them: that is its scatter.
# - **On NCCL.** The same script; each rank has a GPU of its own.
# - **Many machines.** `nn.DataParallel` stops at one machine. DDP does not.
# - **Fine print.** PyTorch's own documentation [advises DDP over DataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html), even on one machine.

# %% [markdown]
# Next: [Form a process group](02_process_groups.ipynb)
