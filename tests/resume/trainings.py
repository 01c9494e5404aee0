"""Runs of lesson 10's train.py: how to start them, and what they leave behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from ddp_lessons import WorkerError, launch
from ddp_lessons.run import Run

LESSON = "10_training_template"
SHORT = (
    "--epochs",
    "2",
    "--every",
    "7",
)  # 44 steps; checkpoints after 7, 14, 21, 22, 28, 35, 42, 44


def train(folder: Path, world_size: int = 2, *args: object, **how: Any) -> Run:
    """Run train.py to its end."""
    args = ("--out", folder, *SHORT, *args)
    return launch(f"{LESSON}/train.py", world_size, args=args, **how)


def altered(folder: Path, world_size: int, *args: object, **how: Any) -> Run:
    """Run train.py without one of its parts, or killed; the run may fail."""
    args = ("--out", folder, *SHORT, *args)
    try:
        return launch(f"{LESSON}/altered.py", world_size, args=args, **how)
    except WorkerError as error:
        return error.run


def killed(folder: Path, world_size: int, rank: int, step: int, *args: object) -> Run:
    """Run train.py until rank `rank` is killed in its `step`-th step."""
    run = altered(folder, world_size, "--kill", rank, step, *args)
    assert run[rank].exitcode == -9
    return run


def saved(folder: Path) -> dict:
    return torch.load(folder / "checkpoint.pt", map_location="cpu", weights_only=True)


def log(folder: Path) -> str:
    return (folder / "log.jsonl").read_text(encoding="utf-8")


def equal(one: Any, other: Any) -> bool:
    """Bit for bit, wherever tensors stand."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    return one == other
