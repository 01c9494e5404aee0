"""Read a finished run's folder into a Run."""

from __future__ import annotations

import json
import linecache
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from ddp_lessons import agreement, calls, forwards, name_server, places
from ddp_lessons.bootstrap import EVENTS, RECORDED, SPEC, STACK, STARTER, rank_folder
from ddp_lessons.placement import Placement
from ddp_lessons.run import Failure, Frame, Meeting, Process, Rank, Record, Run, Starter
from ddp_lessons.text import left_out

KEEP = 4_000_000  # bytes of each stream that a Rank carries: this much from either end


def collect(
    name: str,
    script: Path,
    folder: Path,
    placed: Placement,
    exitcodes: Mapping[int, int | None],
    seconds: float,
) -> Run:
    """The Run that the ranks left in `folder`; `exitcodes` lacks the ranks that were stopped."""
    attempt = last_attempt(folder)

    def ranks(attempt: int, codes: Mapping[int, int | None]) -> tuple[Rank, ...]:
        here = [rank_folder(folder, attempt, rank) for rank in range(len(placed.devices))]
        return tuple(
            read_rank(rank, here[rank], device, codes.get(rank), script, name)
            for rank, device in enumerate(placed.devices)
        )

    spec = json.loads((folder / SPEC).read_text(encoding="utf-8"))
    done = ranks(attempt, exitcodes)
    return Run(
        script=name,
        world_size=len(done),
        placement=placed,
        seconds=seconds,
        ranks=done,
        log=folder,
        source=spec["source"],
        attempt=attempt,
        mismatches=mismatches(done),
        earlier=tuple(ranks(number, ends_noted(folder, number)) for number in range(attempt)),
        starter=read_starter(folder, script, name),
        owner=spec.get("owner"),
    )


# What torchrun notes, before it starts a group again, of the rank that it does so for.
FAILED = re.compile(r"failed \(exitcode: (-?\d+)\) local_rank: \d+ \(pid: (\d+)\)")


def ends_noted(folder: Path, attempt: int) -> dict[int, int]:
    """The exit codes of the ranks for which an attempt was given up."""
    logs = "".join(read_whole(log) for log in sorted(folder.glob("agent_*.log")))
    codes = {int(pid): int(code) for code, pid in FAILED.findall(logs)}
    found = {}
    for here in folder.glob(f"attempt_{attempt}/rank_*"):
        pid = read_events(here).get("started", {}).get("pid")
        if pid in codes:
            found[int(here.name.partition("_")[2])] = codes[pid]
    return found


def read_starter(folder: Path, script: Path, name: str) -> Starter | None:
    """The script's own process, if it is one that starts its ranks itself."""
    here = folder / STARTER
    if not here.is_dir():
        return None
    events = read_events(here)
    started, ended = events.get("started", {}), events.get("ended", {})
    failure = ended.get("failure") or ended.get("left")
    came = (int(path.name.partition("_")[2]) for path in folder.glob("attempt_0/rank_*"))
    return Starter(
        pid=started.get("pid"),
        stdout=read_text(here / "stdout"),
        stderr=name_server.without_complaint(read_text(here / "stderr")),
        records=read_records(here / RECORDED),
        finished=ended.get("finished", False),
        failure=read_failure(failure, script, name) if failure else None,
        came=tuple(sorted(came)),
        above=read_above(started),
    )


def read_above(started: Mapping) -> tuple[Process, ...]:
    return tuple(Process(pid, command) for pid, command in started.get("above", ()))


def mismatches(ranks: Sequence[Rank]) -> tuple[Meeting, ...]:
    """The calls that do not fit together. A call that somebody never made is one if all ranks came
    to their end: before that it is only not made yet."""
    book = agreement.book(rank.calls for rank in ranks)
    found = book.disagreements()
    if not found and all(rank.finished and rank.calls.whole for rank in ranks):
        found = book.unmet()
    return tuple(found)


def read_rank(
    rank: int, here: Path, device: str, exitcode: int | None, script: Path, name: str
) -> Rank:
    events = read_events(here)
    started, ended = events.get("started", {}), events.get("ended", {})
    failure = ended.get("failure") or ended.get("left")
    return Rank(
        rank=rank,
        device=device,
        pid=started.get("pid"),
        parent=started.get("parent"),
        exitcode=exitcode,
        stdout=read_text(here / "stdout"),
        stderr=name_server.without_complaint(read_text(here / "stderr")),
        records=read_records(here / RECORDED),
        finished=ended.get("finished", False),
        failure=read_failure(failure, script, name) if failure else None,
        node=started.get("node", 0),
        local_rank=started.get("local_rank", rank),
        started=started.get("time"),
        ready=events.get("ready", {}).get("time"),
        called=events.get("joining", {}).get("time"),
        elsewhere=events.get("joining", {}).get("elsewhere"),
        expected=events.get("joining", {}).get("size"),
        joined=events.get("joined", {}).get("time"),
        ended=ended.get("time"),
        calls=calls.read(rank, here, script, name),
        forwards=forwards.count(here),
        stack=read_stack(here / STACK, script, name) or failed_at(failure, script, name),
        above=read_above(started),
    )


def read_failure(facts: Mapping, script: Path, name: str) -> Failure:
    frames = tuple(
        (shown(file, script, name), line, function, source)
        for file, line, function, source in facts["frames"]
    )
    file, line = frames[-1][:2] if frames else (None, None)
    chain, when = tuple(facts["chain"]), facts.get("time")
    return Failure(facts["kind"], facts["message"], file, line, frames, chain, when)


def failed_at(facts: Mapping | None, script: Path, name: str) -> tuple[Frame, ...]:
    """The stack at which a rank's script failed."""
    return tuple(
        Frame(shown(file, script, name), line, function, source, places.is_readers(file))
        for file, line, function, source in (facts or {}).get("stack", ())
    )


def shown(file: str, script: Path, name: str) -> str:
    """What a file is called in a report."""
    return name if Path(file) == script else Path(file).name


FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')
# How the stack of a process's main thread ends: what came before that has all been written.
BOTTOM = re.compile(r"(in <module>|in _run_module_as_main|^  \.\.\.)\n$", re.MULTILINE)


def stack_is_whole(here: Path) -> bool:
    """Whether a rank that was asked for its stack has written all of it."""
    return BOTTOM.search(read_whole(here / STACK)) is not None


def read_stack(path: Path, script: Path, name: str) -> tuple[Frame, ...]:
    """The main thread's frames, outermost first: the reader's own and torch's."""
    # faulthandler writes the threads from the newest to the oldest, which is the main thread.
    main = read_whole(path).strip().rpartition("\n\n")[2]
    frames = []
    for line in reversed(main.splitlines()):
        found = FRAME.match(line)
        if not found:
            continue
        file, number, function = unescaped(found[1]), int(found[2]), unescaped(found[3])
        if places.is_readers(file) or places.is_torchs(file):
            source = linecache.getline(file, number).strip()
            where = shown(file, script, name)
            frames.append(Frame(where, number, function, source, places.is_readers(file)))
    return tuple(frames)


def unescaped(name: str) -> str:
    r"""A name as it is: faulthandler writes ASCII, "caf\xe9" in place of "café". A folder's own
    name may hold such a thing, too."""
    if "\\" not in name or Path(name).exists():
        return name
    return re.sub(
        r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})", lambda one: chr(int(one[0][2:], 16)), name
    )


def read_whole(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def read_events(here: Path) -> dict[str, dict]:
    """A rank's milestones by name; a line that the rank was writing when it died is left out."""
    events = {}
    for event in read_json(here / EVENTS, "event"):
        events.setdefault(event["event"], event)
    return events


def read_records(path: Path) -> tuple[Record, ...]:
    return tuple(Record(**found) for found in read_json(path, *Record.__dataclass_fields__))


def read_json(path: Path, *keys: str) -> Iterator[dict]:
    """The objects in a file of JSON lines that have these keys. A script can write into the file by
    mistake; that must not cost the reader the run."""
    for line in read_lines(path):
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict) and set(keys) <= found.keys():
            yield found


def read_lines(path: Path) -> list[str]:
    """The whole lines of a file that may not exist and may end in the middle of a line."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    return text[: text.rfind("\n") + 1].splitlines()


def read_text(path: Path) -> str:
    """A stream's text; of a very long one the two ends, with a line between that says so."""
    try:
        with open(path, "rb") as file:
            head = file.read(2 * KEEP)
            rest = os.fstat(file.fileno()).st_size - len(head)
            if rest <= 0:
                return head.decode("utf-8", "replace")
            # Whole lines, where the text has any.
            head = head[: head.rfind(b"\n", 0, KEEP) + 1 or KEEP]
            start = file.seek(-KEEP, os.SEEK_END)
            tail = file.read()
            tail = tail[tail.find(b"\n") + 1 :]
            end = start + KEEP - len(tail)
            lines = count_lines(file, len(head), end)
    except FileNotFoundError:
        return ""
    middle = left_out(lines, end - len(head))
    return "\n".join(
        [head.decode("utf-8", "replace").rstrip("\n"), middle, tail.decode("utf-8", "replace")]
    )


def count_lines(file: BinaryIO, start: int, end: int) -> int:
    file.seek(start)
    count = 0
    while start < end:
        part = file.read(min(1 << 20, end - start))
        count += part.count(b"\n")
        start += len(part)
    return count


def last_attempt(folder: Path) -> int:
    """The number of the newest attempt that started a rank, from 0."""
    attempts = [int(path.name.partition("_")[2]) for path in folder.glob("attempt_*")]
    return max(attempts, default=0)


def read_end(folder: Path, rank: int) -> dict:
    """The end marker of a rank's newest attempt; empty if it wrote none."""
    return read_events(rank_folder(folder, last_attempt(folder), rank)).get("ended", {})
