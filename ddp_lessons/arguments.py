"""What launch() refuses, in one sentence, before any process starts."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ddp_lessons import engines, folders
from ddp_lessons.run import ScriptError

MOST_RANKS = 128


def check(
    world_size: Any, nnodes: Any, max_restarts: Any, device: str, engine: str, timeout: Any
) -> None:
    """Raise ValueError, with the allowed range, for any argument of launch() that is out of it."""

    def whole(name: str, value: Any, low: int, high: int) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"{name} is a whole number from {low} to {high}, not {value!r}")

    whole("world_size", world_size, 1, MOST_RANKS)
    whole("nnodes", nnodes, 1, MOST_RANKS)
    whole("max_restarts", max_restarts, 0, 100)
    if engine not in engines.NAMES:
        raise ValueError(f"engine is one of {', '.join(engines.NAMES)}, not {engine!r}")
    if device not in ("auto", "cuda", "cpu"):
        raise ValueError(f"device is auto, cuda or cpu, not {device!r}")
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
        raise ValueError(f"timeout is a number of seconds above 0, not {timeout!r}")
    if world_size % nnodes:
        raise ValueError(
            f"world_size={world_size} ranks do not divide into nnodes={nnodes} equal machines"
        )
    for name, value, plain in (("nnodes", nnodes, 1), ("max_restarts", max_restarts, 0)):
        if value != plain and engine not in engines.ABLE[name]:
            able = " or ".join(f'"{one}"' for one in engines.ABLE[name])
            raise ValueError(f"{name}={value} needs engine={able}")


def check_surroundings(args: Any, env: Any) -> None:
    """Raise TypeError or ValueError for what no process can be given."""
    if not isinstance(args, Iterable):
        raise TypeError(f"args is a list of the script's arguments, not {args!r}")
    if not isinstance(env, Mapping | None):
        raise TypeError(f"env is a dict of environment variables, not {env!r}")
    for name, value in (env or {}).items():
        if not isinstance(name, str) or not name or "=" in name or value is None:
            raise ValueError(f"env has {name!r}: {value!r}, which no environment can hold")
        if "\0" in f"{name}{value}":
            raise ValueError(f"env has {name!r}: {value!r}, which no environment can hold")


def check_syntax(path: Path) -> None:
    """Raise ScriptError, in one sentence, before any process starts."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # each rank repeats them, in its stderr
            compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        where = "cell" if folders.is_cell(path) else path.name
        at = f", line {line}" if line else ""
        text = (getattr(error, "text", None) or "").strip()
        message = error.msg if isinstance(error, SyntaxError) else str(error)
        kind = type(error).__name__
        raise ScriptError(
            f"{where}{at}: {kind}: {message}" + (f": {text}" if text else "")
        ) from None
