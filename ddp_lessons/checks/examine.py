"""What each rank runs in a check: import the answer, call it, record what it returned.

The parent starts it with launch(); its arguments are the exercise's key, the answer's path and the
case. What is recorded here is graded there. The record bears a token that was taken out of the
environment before the answer's first line ran, so no record() of the answer's passes for it.
"""

from __future__ import annotations

import builtins
import functools
import json
import os
import random
import sys
import types
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

TOKEN = "DDP_LESSONS_TOKEN"
GRADED = "graded"  # the name of the record
CALLED = "called"  # of one in which an exercise may tell with what it called an answer that raised
LITTLE = 9_999  # characters of an input that was changed


class MissingFunction(Exception):
    """The answer does not define a function that the check calls."""


class OtherWaits:
    """How many Works were asked in another way than by wait(), which the ledger sees: through a
    future, say, or by polling."""

    def __init__(self) -> None:
        import torch.distributed as dist

        self.count = 0
        self._asked: weakref.WeakSet = weakref.WeakSet()
        self._waited: weakref.WeakSet = weakref.WeakSet()
        for name in ("wait", "get_future", "is_completed", "synchronize"):
            setattr(dist.Work, name, self._noting(name, getattr(dist.Work, name)))

    def _noting(self, name: str, method: Callable) -> Callable:
        @functools.wraps(method)
        def noting(work: Any, *args: Any, **options: Any) -> Any:
            found = method(work, *args, **options)
            if name == "wait":
                self._waited.add(work)
                self.count -= work in self._asked
                self._asked.discard(work)
            elif found is not False and work not in self._waited and work not in self._asked:
                self._asked.add(work)
                self.count += 1
            return found

        return noting


class Bench:
    """Where an answer is called: rank, world_size and device, and which inputs must stay as they
    are."""

    def __init__(self, rank: int, world_size: int, device: Any):
        self.rank, self.world_size, self.device = rank, world_size, device
        self._kept: list[tuple[str, Any, Any]] = []

    def keep(self, x: Any, name: str = "x") -> Any:
        """Note a tensor, or a list of them, that the answer must not change. Returns it."""
        if isinstance(x, list | tuple):
            self._kept.append((name, x, list(x)))  # an entry may be put in another's place
            for one in x:
                self.keep(one, name)
        else:
            self._kept.append((name, x, x.detach().clone()))
        return x

    def damaged(self) -> list[tuple[str, Any, Any]]:
        """What has changed of what was noted: its name, what it was and what it is."""
        return [(name, old, new) for name, new, old in self._kept if not _untouched(old, new)]


def _untouched(old: Any, new: Any) -> bool:
    if isinstance(old, list):
        return len(old) == len(new) and all(a is b for a, b in zip(old, new, strict=True))
    if (old.shape, old.dtype) != (new.shape, new.dtype):
        return False
    return bool(((old == new) | ((old != old) & (new != new))).all())  # NaN may stay NaN


def state() -> dict[str, Any]:
    """What an answer shares with the rest of its process, each under words for a reader."""
    import numpy
    import torch
    import torch.distributed as dist
    from torch.distributed import distributed_c10d

    homes = {
        "": builtins,
        "torch.": torch,
        "torch.Tensor.": torch.Tensor,
        "torch.distributed.": dist,
        "torch.distributed.distributed_c10d.": distributed_c10d,
    }
    # Another default dtype changes functions of torch, too, so it is named first; the looks below
    # are worth nothing if functions have changed.
    found: dict[str, Any] = {"torch's default dtype": _known(torch.get_default_dtype)}
    for prefix, home in homes.items():
        # Kept, not only their ids: an id that is free again may be given to another.
        for name in dir(home):  # vars() lacks what a class inherits
            one = getattr(home, name)
            if callable(one) and one is getattr(home, name):  # not made anew by each look
                found[f"{prefix}{name}"] = one
    looks: dict[str, Callable[[], Any]] = {
        "whether gradients are computed": torch.is_grad_enabled,
        "torch's number of threads": torch.get_num_threads,
        "whether torch is deterministic": torch.are_deterministic_algorithms_enabled,
        "torch's random numbers (the global generator)": lambda: torch.get_rng_state().tolist(),
        "numpy's random numbers": lambda: str(numpy.random.get_state()),
        "Python's random numbers": random.getstate,
        "the environment variables": lambda: dict(os.environ),
        "the current folder": os.getcwd,
        "the default process group": lambda: dist.group.WORLD if dist.is_initialized() else None,
    }
    return found | {name: _known(look) for name, look in looks.items()}


def _known(look: Callable[[], Any]) -> Any:
    """What a look shows, or why nothing: an answer may have taken away what it looks at."""
    try:
        return look()
    except Exception as error:  # noqa: BLE001  whatever the answer has put in its place
        return type(error)


def changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Which parts of the state differ. What an import has added to a module is no change."""
    return [name for name, old in before.items() if not _same(old, after.get(name))]


def _same(old: Any, new: Any) -> bool:
    return old is new or (not callable(old) and type(old) is type(new) and bool(old == new))


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
    environ, variables = os.environ, dict(os.environ)
    with process_group() as device:
        import torch.distributed as dist

        # Through the group itself, which the ledger does not see: an answer that sends nothing may
        # leave while other ranks still join, and take their connections along.
        dist.group.WORLD.barrier().wait()
        bench = Bench(dist.get_rank(), dist.get_world_size(), device)
        before, waits = state(), OtherWaits()
        answer = load(path, task.names)
        result = task.on_rank(answer, case, bench)
        touched = [name for name in changed(before, state()) if name not in task.may_change]
        # They say where records go, and who this is.
        os.environ = environ  # noqa: B003
        environ.update(variables)
        damaged = [
            (name, tell(old, LITTLE), tell(new, LITTLE)) for name, old, new in bench.damaged()
        ]
        write(
            GRADED,
            token=token,
            result=tell(result),
            damaged=damaged[:5],
            changed=touched[:5],
            waits=waits.count,
        )


if __name__ == "__main__" and sys.argv[1:]:  # without: only to see whether ranks can be started
    main()
