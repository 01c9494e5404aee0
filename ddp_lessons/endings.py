"""How a rank ended, in words: pure functions from a Run to text."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

from ddp_lessons import causes
from ddp_lessons.run import Frame, Rank, Run, Starter
from ddp_lessons.stall import names

FRAMES = 6  # of a traceback, in a report
# What is another one in each run: addresses of processes, and of objects in memory.
ELSEWHERE = re.compile(r"\[?\d+\.\d+\.\d+\.\d+\]?:\d+(\$\d+)?|\b0x[0-9a-f]{6,}\b")
LONG = 120  # characters: a first line that long, without an end, is only the beginning
WIDTH = 500  # characters of a message, in a report

# "[enforce fail at .../device.cc:84] ifa != nullptr. ", "[.../pair.cc:525] "
NATIVE = re.compile(r"^\[[^\]]*\.\w+:\d+\] *(\S+ [!=<>]=? \S+\. )?")

# What exceptions without a message mean here.
SILENT = {"BdbQuit": "a rank has no keyboard, so breakpoint() and pdb cannot stop there"}

SIGNALS = {
    "SIGKILL": "often the computer had no memory (RAM) left",
    "SIGSEGV": "a crash in native code",
    "SIGABRT": "native code gave up; see error.run[rank].stderr",
    "SIGBUS": "often /dev/shm is full",
    "SIGTERM": "something asked it to stop",
}


def sentence(ranks: list[Rank], run: Run, first: bool = True) -> str:
    """What happened to these ranks, which ended alike, where, in one sentence. `first`: before the
    others failed, if they did."""
    rank, who = ranks[0], names([rank.rank for rank in ranks])
    if rank.failure and rank.failure.kind == "exit":
        return f"{who} {exit_phrase(rank)}."
    if rank.failure:
        message = first_line(rank.failure.message) or SILENT.get(rank.failure.kind, "")
        failed = "failed first" if first and len(ranks) < len(run) else "failed"
        return f"{who} {failed}{at(rank)}: {rank.failure.kind}" + (
            f": {message}" if message else ""
        )
    if rank.finished:
        them = "it" if len(ranks) == 1 else "them"
        return f"{who} came to the end of the script while other ranks still needed {them}."
    if rank.exitcode is not None and rank.exitcode < 0:
        name = signal_name(-rank.exitcode)
        hint = f": {native_words(rank) or SIGNALS[name]}" if name in SIGNALS else ""
        was = "was" if len(ranks) == 1 else "were"
        return f"{who} {was} killed by {name} (signal {-rank.exitcode}){hint}."
    code = "" if rank.exitcode is None else f" with exit code {rank.exitcode}"
    if rank.started is None:
        return f"{who} ended{code} before the script began; the files in run.log say more."
    return f"{who} left early{code}, before the end of the script."


def brief(rank: Rank) -> str:
    """That a rank failed, and where, without what it said."""
    if rank.exitcode is not None and rank.exitcode < 0:
        return f"rank {rank.rank} was killed by {signal_name(-rank.exitcode)}"
    return f"rank {rank.rank} failed{at(rank)}"


def native_words(rank: Rank) -> str:
    """What native code said before it gave up, from the rank's stderr; "" if nothing is known."""
    said = re.search(r"^  what\(\):  (.*(?:\n.+)?)", rank.stderr, re.MULTILINE)
    return first_line(said[1]) if said else ""


def exit_phrase(rank: Rank) -> str:
    """How a rank left by sys.exit: a number given to it is an exit code, all else a message."""
    code = rank.failure.message
    if code.lstrip("-").isdigit() and rank.exitcode == int(code) & 0xFF:
        return f"left early with exit code {code}{at(rank)}"
    return f'left early{at(rank)}, with the message "{first_line(code)}"'


def at(rank: Rank) -> str:
    return f", line {rank.failure.line}" if rank.failure and rank.failure.line else ""


def frames(rank: Rank | Starter) -> list[str]:
    """The reader's own frames of a rank that failed, as Python prints them."""
    failure = rank.failure
    return levels([Frame(*level, own=True) for level in failure.frames]) if failure else []


def levels(trace: Sequence[Frame]) -> list[str]:
    """Frames, outermost first; of a deep recursion the ends."""
    lines = [
        f"  {frame.file}, line {frame.line}, in {frame.function}\n    {frame.source}".rstrip()
        for frame in trace
    ]
    if len(lines) <= FRAMES + 1:
        return lines
    half = FRAMES // 2
    return [*lines[:half], f"  … {len(lines) - FRAMES} more calls …", *lines[-half:]]


def first_line(message: str) -> str:
    """What a message means, if that is known, else its first sentence or line, whichever is longer,
    without a place in a C++ file."""
    line = causes.translate(message)
    if line is None:
        first, *others = message.strip().splitlines() or [""]
        line = NATIVE.sub("", first)
        # A long sentence that torch has broken into lines.
        while (
            others and others[0].strip() and len(line) > LONG and line.rstrip()[-1:] not in ".!?:)"
        ):
            line = f"{line.rstrip()} {others.pop(0).strip()}"
    line = ELSEWHERE.sub("…", line)
    return line if len(line) <= WIDTH else line[:WIDTH] + "…"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "an unknown signal"
