"""Note when a rank joins its process group, and where it looks for the others."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable


def note(write: Callable[..., None]) -> None:
    """Have `write(event, **facts)` called when this process calls init_process_group, and when that
    returns."""
    import torch.distributed as dist

    inner = dist.init_process_group
    home = address()

    @functools.wraps(inner)
    def init_process_group(*args, **kwargs):  # noqa: ANN002, ANN003, ANN202
        _made.append(True)
        write("joining", elsewhere=elsewhere(args, kwargs, home), size=expected(args, kwargs))
        result = inner(*args, **kwargs)
        write("joined")
        return result

    dist.init_process_group = dist.distributed_c10d.init_process_group = init_process_group


_made: list[bool] = []


def times() -> int:
    """How often this process has called init_process_group."""
    return len(_made)


def keep_apart(attempt: int) -> None:
    """Meet in a part of the store that earlier attempts have not used. It still has their keys: the
    addresses of processes that are gone, which gloo now and then takes for those of today."""
    from torch.distributed import PrefixStore

    # torch.distributed.rendezvous is a function, which hides the module of that name.
    rendezvous = importlib.import_module("torch.distributed.rendezvous")
    inner = rendezvous._create_c10d_store

    @functools.wraps(inner)
    def create(*args, **kwargs):  # noqa: ANN002, ANN003, ANN202
        return PrefixStore(f"attempt_{attempt}", inner(*args, **kwargs))

    rendezvous._create_c10d_store = create


def address() -> str | None:
    if "MASTER_ADDR" not in os.environ:
        return None
    return f"{os.environ['MASTER_ADDR']}:{os.environ.get('MASTER_PORT')}"


def elsewhere(args: tuple, kwargs: dict, home: str | None) -> str | None:
    """The address that a script meets at, if it is not the one that was prepared for this run; None
    too if none was."""
    if home is None:
        return None
    method = kwargs.get("init_method") or (args[1] if len(args) > 1 else None) or "env://"
    where = f"tcp://{address()}" if str(method).startswith("env://") else str(method)
    here = where.startswith("file:") or "store" in kwargs or where == f"tcp://{home}"
    return None if here else where


def expected(args: tuple, kwargs: dict) -> int:
    """How many ranks init_process_group will wait for."""
    given = args[3] if len(args) > 3 else kwargs.get("world_size", -1)
    return given if given != -1 else int(os.environ.get("WORLD_SIZE", -1))
