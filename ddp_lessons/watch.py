"""Wait for the ranks of a run, and decide when there is nothing more to wait for."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ddp_lessons import agreement, blame, bootstrap, calls, collect
from ddp_lessons.agreement import Book
from ddp_lessons.engines import Workers

# Seconds that the other ranks get to report after the first failure: as many as it took to come to
# that, between these two. On a busy machine the same failure of all ranks is more spread out.
GRACE = 0.5, 2.0
PATIENCE = 5.0  # the same while all that is known is that some rank has lost its peer
SETTLE = 1.0  # after a disagreement: the values that torch makes of it are worth seeing
ANSWER = 2.0  # that ranks get to write their stacks
AT_ONCE = 0.2  # the same after Stop, when somebody waits
LOOK = 0.2  # seconds between two looks at what the ranks have written so far

# What looks at a run while it goes on. It returns how many more seconds the run may take because of
# what it saw, or None.
Look = Callable[[], float | None]


def watch(
    workers: Workers, deadline: float, folder: Path, looks: Sequence[Look] = ()
) -> dict[int, int | None]:
    """Wait until all ranks have ended, or until shortly after one has failed, or for the limit, or
    for as long as the looks allow. `deadline` is in monotonic seconds."""
    exitcodes: dict[int, int | None] = {}
    began = time.monotonic()
    while workers.running():
        seconds = deadline - time.monotonic()
        if seconds <= 0:
            break
        ended = workers.wait(min(seconds, LOOK))
        exitcodes.update(ended)
        allowed = [after_end(folder, rank, code, began) for rank, code in ended.items()]
        if exitcodes and not ended:
            allowed.append(after_leaving(folder, workers.running(), set(exitcodes)))
        allowed += [look() for look in looks]
        now = time.monotonic()
        deadline = min([deadline, *(now + more for more in allowed if more is not None)])
    return exitcodes


def after_end(folder: Path, rank: int, code: int | None, began: float) -> float | None:
    """How many seconds the others get once this rank has ended; None if it ended well."""
    end = collect.read_end(folder, rank)
    if code == 0 and end.get("finished"):
        return None
    # The rank that failed first is not always the first to be seen: let others report.
    failure = end.get("failure")
    told = failure and f"{failure['kind']}: {failure['message']}"
    if failure and blame.is_echo(told, *failure["chain"]):
        return PATIENCE
    return min(max(time.monotonic() - began, GRACE[0]), GRACE[1])


def after_leaving(folder: Path, running: set[int], gone: set[int]) -> float | None:
    """How many seconds ranks get that wait in init_process_group for one that has ended without
    joining: nobody can come in its place."""
    attempt = collect.last_attempt(folder)
    events = {
        rank: collect.read_events(bootstrap.rank_folder(folder, attempt, rank))
        for rank in running | gone
    }
    stayed_out = [rank for rank in gone if "joining" not in events[rank]]
    joining = [events[rank].get("joining") for rank in running if "joined" not in events[rank]]
    if not stayed_out or None in joining or not joining:
        return None
    possible = len(events) - len(stayed_out)
    in_vain = all(one["size"] > possible and not one["elsewhere"] for one in joining)
    return GRACE[1] if in_vain else None


def disagreement(folder: Path, world_size: int) -> Look:
    """A look at the ledgers: once two calls that meet do not fit together, the run may take a
    moment more. What torch makes of it can be a wait for ever."""
    attempt, tails, book, waited = -1, [], Book(), False

    def look() -> float | None:
        nonlocal attempt, tails, book, waited
        newest = collect.last_attempt(folder)
        if newest != attempt:
            attempt, book = newest, Book()
            tails = [
                calls.Tail(rank, bootstrap.rank_folder(folder, attempt, rank))
                for rank in range(world_size)
            ]
        unread = [tail.unread() for tail in tails]
        count = book.skip(unread)
        if count:
            for tail in tails:
                tail.read(count)
        elif any(unread) and not all(unread) and not waited:
            waited = True  # some ranks are ahead: the others may have caught up at the next look
            return None
        else:
            for tail, new in zip(tails, unread, strict=True):
                book.take(new)
                tail.read(len(new))
        waited = False
        if not book.disagreements():
            return None
        # A call that torch is about to refuse looks like one that waits: look at all of it again.
        book = agreement.book(tail.whole() for tail in tails)
        return SETTLE if book.disagreements() else None

    return look


def begun(folder: Path, world_size: int, timeout: float, tell: Callable[[float], None]) -> Look:
    """A look at ranks that import torch themselves, in seconds, or on a busy machine in a minute.
    Once all have come to the script, in an attempt, the run may take `timeout` more, and no longer.
    `tell` hears when that was."""
    ready: dict[int, float] = {}
    attempt = 0

    def look() -> float | None:
        nonlocal attempt
        if len(ready) == world_size:
            return None
        newest = collect.last_attempt(folder)
        if newest != attempt:  # a rank died before the script, and torchrun began anew
            attempt = newest
            ready.clear()
        for rank in set(range(world_size)) - set(ready):
            event = collect.read_events(bootstrap.rank_folder(folder, attempt, rank)).get("ready")
            if event:
                ready[rank] = event["time"]
        if len(ready) < world_size:
            return None
        tell(came := max(ready.values()))
        return timeout - (time.monotonic() - came)

    return look


def ask_stacks(workers: Workers, folder: Path, seconds: float = ANSWER) -> None:
    """Have every rank that still runs write its Python stack, and wait until it is written, at most
    that long."""
    attempt = collect.last_attempt(folder)
    running = workers.running()
    here = {rank: bootstrap.rank_folder(folder, attempt, rank) for rank in running}
    # Before a rank has made that file, the signal would end it.
    listening = {rank for rank in running if (here[rank] / bootstrap.STACK).exists()}
    if bootstrap.ASK is None or not listening:
        return
    workers.ask(listening, bootstrap.ASK)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if all(collect.stack_is_whole(here[rank]) for rank in listening):
            return
        time.sleep(0.01)
