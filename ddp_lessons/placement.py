"""Which backend and device each rank gets, and the sentence that says why.

Pure arithmetic: the number of GPUs comes in as an argument. `gpu_count()` is the one question asked
of the machine, and it leaves CUDA uninitialised where the driver's library can be asked instead.
"""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Placement:
    """Where the ranks of one run go.

    `devices` has one torch device string a rank. `visible` is the CUDA_VISIBLE_DEVICES that each
    machine's ranks see (None: leave it as it is), one entry a machine.
    """

    backend: str
    devices: tuple[str, ...]
    visible: tuple[str | None, ...]
    sentence: str


def gpu_count(listed: str | None = None) -> int:
    """How many GPUs a new process would see, honouring CUDA_VISIBLE_DEVICES.

    listed: what that variable will be for the new process, if not what it is here.
    """
    import torch

    found = torch.cuda.device_count()
    return found if listed is None else min(found, len(card_names(listed)))


def nccl_built() -> bool:
    import torch.distributed as dist

    return dist.is_nccl_available()


def place(
    world_size: int,
    nnodes: int = 1,
    device: str = "auto",
    *,
    gpus: int,
    nccl: bool,
    listed: str | None = None,
    away: bool = False,
) -> Placement:
    """Choose backend and devices for `world_size` ranks on `nnodes` machines (all are this one).

    As many GPUs as ranks: NCCL, one GPU a rank; with nnodes > 1 each machine is given its own GPUs
    by CUDA_VISIBLE_DEVICES, so that LOCAL_RANK counts from 0 on each. Otherwise gloo on the CPU.
    listed: the ranks' CUDA_VISIBLE_DEVICES, if not this process's own. away: the machines are
    others, which give as many GPUs as they are asked for: none with "auto".
    Raises RuntimeError if device="cuda" cannot be had, with the ways out.
    """
    if away:
        gpus = world_size if device == "cuda" else 0
    ranks = f"{world_size} rank" + ("" if world_size == 1 else "s")
    cards = f"{gpus} GPU" + ("" if gpus == 1 else "s")
    need = f"{ranks} needs 1 GPU" if world_size == 1 else f"{ranks} need {world_size} GPUs"
    fits = gpus >= world_size and nccl
    if device == "cuda" and not fits:
        if gpus and not nccl:
            why = "this build of torch has no NCCL. Install a CUDA build of torch on Linux"
        elif gpus:
            why = f"{need}. Ask for world_size={gpus}"
        else:
            why = f"{need}. Run this on a machine that has them"
        raise RuntimeError(
            f'device="cuda": this machine shows {cards}, and {why}, or leave out device= to run '
            "the same ranks with gloo on the CPU."
        )
    if device == "cpu" or not fits:
        if away and device == "auto":
            why = 'device="cuda" asks the cluster for a GPU a rank'
        elif device == "cpu":
            why = 'asked for with device="cpu"'
        elif gpus and not nccl:
            why = f"{cards}, but this build of torch has no NCCL"
        elif gpus:
            why = f"{ranks} and {cards}: NCCL wants a GPU for each rank"
        else:
            why = "no GPU on this machine"
        return Placement("gloo", ("cpu",) * world_size, ("",) * nnodes, f"gloo on the CPU ({why}).")
    per_node = world_size // nnodes
    devices = tuple(f"cuda:{rank % per_node}" for rank in range(world_size))
    if away:
        return Placement(
            "nccl", devices, (None,) * nnodes, "NCCL, one GPU a rank, of the cluster's."
        )
    if nnodes == 1:
        return Placement("nccl", devices, (None,), f"NCCL, one GPU a rank ({cards}).")
    cards_seen = card_names(listed or os.environ.get("CUDA_VISIBLE_DEVICES", ""))
    cards_seen = cards_seen or [str(card) for card in range(gpus)]
    visible = tuple(
        ",".join(cards_seen[node * per_node : (node + 1) * per_node]) for node in range(nnodes)
    )
    return Placement(
        "nccl", devices, visible, f"NCCL, one GPU a rank; each machine sees {per_node} of {cards}."
    )


def card_names(listed: str) -> list[str]:
    """The cards that a value of CUDA_VISIBLE_DEVICES names."""
    return [name.strip() for name in listed.split(",") if name.strip()]
