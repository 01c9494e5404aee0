"""Whose file a frame stands in: the reader's, torch's, or somebody else's."""

from __future__ import annotations

import importlib.util
import os
from functools import cache
from pathlib import Path
from types import FrameType

PACKAGE = Path(__file__).resolve().parent
LIBRARY = Path(os.__file__).resolve().parent


@cache
def is_readers(filename: str) -> bool:
    """Whether a file is the reader's own: not the standard library, not an installed package.

    The course's scripts count as the reader's own, the rest of this package does not.
    """
    if filename.startswith("<"):
        return False
    path = Path(filename).resolve()
    if PACKAGE in path.parents:
        return PACKAGE / "scripts" in path.parents
    return LIBRARY not in path.parents and "site-packages" not in path.parts


@cache
def is_torchs(filename: str) -> bool:
    """Whether a file belongs to torch. Imports nothing."""
    return Path(filename).resolve().is_relative_to(_torch_home())


@cache
def _torch_home() -> Path:
    spec = importlib.util.find_spec("torch")
    return Path(spec.origin).resolve().parent if spec and spec.origin else Path("/nowhere")


def readers_frame(frame: FrameType) -> FrameType:
    """The innermost frame, from this one outwards, in a file of the reader's; this one if none."""
    found = frame
    while found is not None and not is_readers(found.f_code.co_filename):
        found = found.f_back
    return found or frame
