"""An exception that ended a rank's script, as data for its end marker."""

from __future__ import annotations

import time
import traceback
from pathlib import Path

from ddp_lessons import places
from ddp_lessons.worker import RAISED

# The modules whose frames lie around the reader's. Not worker: a script calls that one itself.
AROUND = ("bootstrap", "own_ranks", "forwards", "joining", "ledger")
OURS = {str(Path(__file__).parent / f"{name}.py") for name in AROUND}


def without_ours(error: BaseException) -> BaseException:
    """The error with our own frames taken out of its traceback: those that ran the script, at its
    top, and those of the wrappers around torch.distributed's functions."""
    kept, tb = [], error.__traceback__
    while tb is not None:
        if tb.tb_frame.f_code.co_filename not in OURS:
            kept.append(tb)
        tb = tb.tb_next
    for one, following in zip(kept, [*kept[1:], None], strict=True):
        one.tb_next = following
    return error.with_traceback(kept[0] if kept else None)


def describe(error: BaseException, kind: str = "", message: str | None = None) -> dict:
    """The failure as data, with the reader's own frames, outermost first. kind, message: what to
    call it, if not the exception's class and its own words."""
    if isinstance(error, SyntaxError) and error.filename:
        frames = [(error.filename, error.lineno or 0, "<module>", (error.text or "").strip())]
    else:
        stack = traceback.extract_tb(error.__traceback__)
        frames = [(f.filename, f.lineno or 0, f.name, f.line or "") for f in stack]
    facts = {"kind": kind or type(error).__name__, "chain": chain(error)}
    facts["message"] = said_by(error) if message is None else message
    facts["frames"] = [frame for frame in frames if places.is_readers(frame[0])]
    facts["stack"] = [f for f in frames if places.is_readers(f[0]) or places.is_torchs(f[0])]
    facts["time"] = getattr(error, RAISED, time.monotonic())
    return facts


def chain(error: BaseException) -> list[str]:
    """The exceptions that led to this one, newest first, each as "Class: message"."""
    messages, seen = [], {id(error)}
    while (error := error.__cause__ or error.__context__) and id(error) not in seen:
        seen.add(id(error))
        messages.append(f"{type(error).__name__}: {said_by(error)}")
    return messages


def said_by(error: BaseException) -> str:
    """The error's message as text that any file can hold, also if its __str__ is broken."""
    try:
        message = str(error)
    except Exception as broken:  # noqa: BLE001  the reader's own code
        message = f"(its message cannot be had: __str__ raised {type(broken).__name__})"
    return message.encode("utf-8", "backslashreplace").decode()
