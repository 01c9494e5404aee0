"""Train a network on handwritten digits with DDP: the script to copy.

    torchrun --nproc-per-node 2 train.py --out run

After a kill the same line goes on from the last checkpoint, and ends with the parameters and the
log of a run that nobody killed. Plain `python train.py` is a world of one rank.
"""

import argparse
import contextlib
import gc
import json
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--out", type=Path, default=Path("run"), help="this run's, seen by all ranks")
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--batch", type=int, default=64, help="samples of a step, over all ranks")
parser.add_argument("--accumulate", type=int, default=2, help="micro-batches of a step")
parser.add_argument("--lr", type=float, default=0.2)
parser.add_argument("--dropout", type=float, default=0.2)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--every", type=int, default=11, help="steps from checkpoint to checkpoint")
parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so many")


@torch.no_grad()
def evaluate(inner, x, y):
    """The accuracy on the test samples of all ranks together."""
    inner.eval()
    right = inner(x).argmax(dim=1) == y
    inner.train()
    counts = torch.stack([right.sum(), torch.ones_like(right).sum()])
    dist.all_reduce(counts)  # counts: a mean of the ranks' accuracies would not be exact
    return counts[0].item() / counts[1].item()


def save(state, path):
    """Write the whole file or none: a kill leaves the old one or the new one, never a half."""
    unfinished = path.with_suffix(".unfinished")
    with open(unfinished, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())  # on the disk before it bears the name: the power may fail, too
    unfinished.replace(path)


def main():
    args, began = parser.parse_args(), time.monotonic()
    alone = "RANK" not in os.environ  # python train.py
    env = {"LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1} if alone else os.environ
    cuda = torch.cuda.device_count() >= int(env["LOCAL_WORLD_SIZE"])
    device = torch.device("cuda", int(env["LOCAL_RANK"])) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    how = {"store": dist.HashStore(), "rank": 0, "world_size": 1} if alone else {}
    dist.init_process_group("nccl" if cuda else "gloo", device_id=device if cuda else None, **how)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    share = args.batch // world_size  # this rank's samples of a step
    micro = share // args.accumulate
    if micro * args.accumulate * world_size != args.batch:
        parser.error("--batch must divide by the number of ranks times --accumulate")

    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # asked for by the next line
    torch.use_deterministic_algorithms(True)
    digits = load_digits()
    mixed = torch.randperm(1797, generator=torch.Generator().manual_seed(0))
    x, y = torch.tensor(digits.data).float()[mixed] / 16, torch.tensor(digits.target)[mixed]
    train_set = TensorDataset(x[:1408], y[:1408])
    sampler = DistributedSampler(train_set, seed=args.seed)  # equal on all ranks: what is dealt out
    test = [part[1408:][rank::world_size].to(device) for part in (x, y)]  # nothing twice

    torch.manual_seed(args.seed)  # equal: the first weights
    layers = [nn.Linear(64, 128), nn.ReLU(), nn.Dropout(args.dropout), nn.Linear(128, 10)]
    inner = nn.Sequential(*layers).to(device)
    model = DDP(inner, device_ids=[device.index] if cuda else None)
    per_epoch = -(-len(sampler) // share)
    optimizer = torch.optim.SGD(inner.parameters(), lr=args.lr, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs * per_epoch)
    # DDP sorts its buckets anew after the first backward. A rehearsal, or else a run that goes on
    # would add the gradients of three or more ranks in another order than one that was not killed.
    model(train_set[:micro][0].to(device)).sum().backward()
    optimizer.zero_grad()
    torch.manual_seed(args.seed + 1 + rank)  # different on each rank: dropout

    args.out.mkdir(parents=True, exist_ok=True)
    checkpoint, log = args.out / "checkpoint.pt", args.out / "log.jsonl"
    kept = {name: vars(args)[name] for name in ("epochs", "batch", "lr", "dropout", "seed")}
    step, log_size = 0, 0
    if checkpoint.exists():
        saved = torch.load(checkpoint, map_location="cpu", weights_only=True)
        if saved["args"] != kept:  # else: a step or a learning rate of another run, in silence
            parser.error(f"{checkpoint} is of a run with other arguments: {saved['args']}")
        inner.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        step, log_size = saved["step"], saved["log_size"]
        if len(saved["generators"]) == world_size:  # else: new ranks, new dropout
            both = torch.set_rng_state, torch.cuda.set_rng_state
            for restore, state in zip(both, saved["generators"][rank], strict=False):
                restore(state)
    steps = [None] * world_size
    dist.all_gather_object(steps, step)
    if len(set(steps)) > 1:
        parser.error(f"--out must be a folder that all ranks see; they go on after steps {steps}")
    if rank == 0:
        print(f"world size {world_size}, step {step} is done ({device.type})", flush=True)
        log.touch()
        os.truncate(log, log_size)  # what follows the checkpoint will come again

    stop = False
    totals = torch.zeros(2, dtype=torch.float64, device=device)  # sum of losses, samples
    while step < args.epochs * per_epoch and not stop:
        epoch, done = divmod(step, per_epoch)
        sampler.set_epoch(epoch)
        rest = list(sampler)[done * share :]
        # The loader draws a seed for its workers: not from dropout's generator, and a new one on
        # each rank and in each epoch, or else workers that augment would repeat themselves.
        draws = torch.Generator().manual_seed(args.seed + step * world_size + rank)
        loader = DataLoader(train_set, share, sampler=rest, generator=draws)
        for inputs, labels in loader:
            for start in range(0, len(inputs), micro):
                x, y = (part[start : start + micro].to(device) for part in (inputs, labels))
                last = start + micro >= len(inputs)
                with contextlib.nullcontext() if last else model.no_sync():
                    loss = cross_entropy(model(x), y, reduction="sum")
                    (loss / len(inputs)).backward()
                totals[0] += loss.detach()
                totals[1] += len(x)
            nn.utils.clip_grad_norm_(inner.parameters(), 1.0)  # averaged by now, so equal
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
            step += 1
            if step % args.every and step % per_epoch:
                continue

            # Here all ranks meet, after the same step.
            dist.all_reduce(totals)
            line = {"step": step, "loss": (totals[0] / totals[1]).item()}
            totals.zero_()
            if step % per_epoch == 0:
                line["accuracy"] = evaluate(inner, *test)
            late = torch.tensor(time.monotonic() - began > 60 * args.minutes).int().to(device)
            dist.all_reduce(late, op=dist.ReduceOp.MAX)  # one clock is enough to stop all
            generators = [None] * world_size
            own = [torch.get_rng_state()] + ([torch.cuda.get_rng_state()] if cuda else [])
            dist.all_gather_object(generators, own)
            if rank == 0:
                print(line, flush=True)
                with open(log, "a") as file:
                    file.write(json.dumps(line) + "\n")
                    file.flush()
                    os.fsync(file.fileno())
                state = {"step": step, "log_size": log.stat().st_size, "generators": generators}
                state |= {"model": inner.state_dict(), "optimizer": optimizer.state_dict()}
                save(state | {"scheduler": scheduler.state_dict(), "args": kept}, checkpoint)
            stop = bool(late)
            if stop:
                break
    del model
    gc.collect()  # a DDP model that outlives its group can make Python abort at its end
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
