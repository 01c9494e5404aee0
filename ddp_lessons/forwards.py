"""How often a rank went through the forward of DDP: steps are what ranks get apart in.

`note(folder)` counts in this process from now on, `count(folder)` reads it from any process.
"""

from __future__ import annotations

import functools
import mmap
import struct
from pathlib import Path

FILE = "forwards"  # in the rank's folder
NUMBER = struct.Struct("<Q")


def note(folder: Path) -> None:
    import torch
    from torch.nn.parallel import DistributedDataParallel

    inner = DistributedDataParallel.forward
    made: list[mmap.mmap] = []

    @functools.wraps(inner)
    def forward(*args, **kwargs):  # noqa: ANN002, ANN003, ANN202
        # torch.compile reads this as true, and leaves the counting out of what it compiles.
        if not torch.compiler.is_compiling():
            if not made:
                made.append(_mapped(folder))
            NUMBER.pack_into(made[0], 0, NUMBER.unpack_from(made[0])[0] + 1)
        return inner(*args, **kwargs)

    DistributedDataParallel.forward = forward


def _mapped(folder: Path) -> mmap.mmap:
    """Eight bytes that outlive this process; its own memory where the disk is full."""
    try:
        (folder / FILE).write_bytes(NUMBER.pack(0))
        with open(folder / FILE, "r+b") as file:
            return mmap.mmap(file.fileno(), NUMBER.size)
    except OSError:
        return mmap.mmap(-1, NUMBER.size)


def count(folder: Path) -> int:
    """0 if the rank used no DDP."""
    try:
        return NUMBER.unpack((folder / FILE).read_bytes())[0]
    except (FileNotFoundError, struct.error):
        return 0
