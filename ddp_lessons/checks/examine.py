"""What each rank runs in a check: import the answer, call it, record what it returned.

The parent starts it with launch(); its arguments are the exercise's key, the answer's path and the
case. What is recorded here is graded there. The record bears a token that was taken out of the
environment before the answer's first line ran, so no record() of the answer's passes for it.
"""

from __future__ import annotations

import builtins
import json
import os
import random
import sys
import types
from pathlib import Path
from typing import Any

TOKEN = "DDP_LESSONS_TOKEN"
GRADED = "graded"  # the name of the record


class MissingFunction(Exception):
    """The answer does not define a function that the check calls."""


class Bench:
    """Where an answer is called: rank, world_size and device, and which tensors must stay as they
    are."""

    def __init__(self, rank: int, world_size: int, device: Any):
        self.rank, self.world_size, self.device = rank, world_size, device
        self._kept: list[tuple[str, Any, Any]] = []

    def keep(self, x: Any, name: str = "x") -> Any:
        """Note a tensor, or a list of them, that the answer must not change. Returns it."""
        for one in x if isinstance(x, list | tuple) else [x]:
            self._kept.append((name, one, one.detach().clone()))
        return x

    def damaged(self) -> list[list[Any]]:
        """Each noted tensor that has changed: its name, what it was and what it is."""
        return [
            [name, before.tolist(), now.tolist()]
            for name, now, before in self._kept
            if now.shape != before.shape or not bool((now == before).all())
        ]


def state() -> dict[str, Any]:
    """What an answer shares with the rest of its process, each under words for a reader."""
    import numpy
    import torch
    import torch.distributed as dist
    from torch.distributed import distributed_c10d

    modules = (builtins, torch, torch.Tensor, dist, distributed_c10d)
    return {
        "torch's default dtype": torch.get_default_dtype(),
        "whether gradients are computed": torch.is_grad_enabled(),
        "torch's number of threads": torch.get_num_threads(),
        "whether torch is deterministic": torch.are_deterministic_algorithms_enabled(),
        "torch's random numbers (the global generator)": torch.get_rng_state().tolist(),
        "numpy's random numbers": str(numpy.random.get_state()),
        "Python's random numbers": random.getstate(),
        "the environment variables": dict(os.environ),
        "the current folder": str(Path.cwd()),
        "the default process group": dist.group.WORLD if dist.is_initialized() else None,
        "the functions of torch or Python": [
            {name: id(value) for name, value in vars(module).items() if callable(value)}
            for module in modules
        ],
    }


def changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Which parts of the state differ. What an import has added to a module is no change."""
    found = []
    for name, old in before.items():
        new = after[name]
        if isinstance(old, list) and old and isinstance(old[0], dict):
            pairs = zip(old, new, strict=True)
            same = all(n.get(key) == was for o, n in pairs for key, was in o.items())
        else:
            same = old == new
        if not same:
            found.append(name)
    return found


def load(path: str, names: tuple[str, ...]) -> types.ModuleType:
    """Run the answer's file as a module and return it. Raises MissingFunction."""
    module = types.ModuleType("answer")
    module.__file__ = path
    sys.modules["answer"] = module
    exec(compile(Path(path).read_bytes(), path, "exec", dont_inherit=True), module.__dict__)
    for name in names:
        if not callable(getattr(module, name, None)):
            raise MissingFunction(f"there is no function {name}()")
    return module


def main() -> None:
    from ddp_lessons.checks import exercise, values
    from ddp_lessons.worker import process_group, record

    key, path, case = sys.argv[1:]
    token = os.environ.pop(TOKEN)
    task = exercise.find(key)
    case = exercise.Case(**json.loads(case))
    sys.argv = [path]
    sys.path.insert(0, str(Path(path).parent))
    write, tell = record, values.tell  # as they are before the answer's first line
    with process_group() as device:
        import torch.distributed as dist

        bench = Bench(dist.get_rank(), dist.get_world_size(), device)
        before = state()
        answer = load(path, task.names)
        result = task.on_rank(answer, case, bench)
        touched = [name for name in changed(before, state()) if name not in task.may_change]
        write(GRADED, token=token, result=tell(result), damaged=bench.damaged(), changed=touched)


if __name__ == "__main__":
    main()
