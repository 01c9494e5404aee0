"""The five starts of 02_process_groups/will_they_meet, and what each process really does in them.

As a script, each rank of one launch acts as one process of one start: it takes that process's
RANK, WORLD_SIZE and MASTER_PORT, and calls init_process_group with nobody's help. It records the
`start`, the `process`, its `outcome` and `until`, the monotonic time at which it went on or raised
(None: never).
"""

from __future__ import annotations

import functools
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ddp_lessons.run import Run

GOES_ON, RAISES, WAITS = "goes on", "raises", "waits"
WORDS = (GOES_ON, RAISES, WAITS)
QUIET = 4.0  # seconds in which no process goes on or raises: the rest of them waits
LATE = 1.0  # seconds
LIMIT = 30  # seconds for all of it; about 6 unless the computer is busy


@dataclass(frozen=True)
class Process:
    """What one process is started with."""

    rank: int
    world_size: int
    late: bool = False
    lost: bool = False  # its MASTER_PORT is one where nobody listens

    def __str__(self) -> str:
        more = ", a second later" * self.late + ", at another port" * self.lost
        return f"{self.rank}/{self.world_size}{more}"


STARTS = {
    "A": (Process(0, 3), Process(1, 3), Process(2, 3, lost=True)),
    "B": (Process(1, 2), Process(0, 2, late=True)),
    "C": (Process(0, 2), Process(0, 2, late=True)),
    "D": (Process(1, 2), Process(2, 2)),
    "E": (Process(0, 2), Process(1, 2), Process(2, 2, late=True)),
}
EVERY = [(start, process) for start, them in STARTS.items() for process in them]


@functools.cache
def measured() -> Run:
    """The Run in which all of them were started, once in the life of this Python process: about
    6 seconds.

    Raises RuntimeError on a computer that is too slow to tell who waits and who needs longer."""
    from ddp_lessons.launcher import launch
    from ddp_lessons.run import WorkerError

    # torch looks up the name of ::ffff:127.0.0.1, which a name server may be slow to deny.
    env = {"RES_OPTIONS": "timeout:1 attempts:1"}
    try:
        return launch(__file__, len(EVERY), device="cpu", timeout=LIMIT, env=env)
    except WorkerError:
        raise RuntimeError(
            f"the processes could not all be started and watched in {LIMIT} s: this computer is "
            "busy. Run the check again."
        ) from None


def outcomes(run: Run) -> dict[str, list[str]]:
    """What the processes did, as a prediction would say it."""
    found = {start: [] for start in STARTS}
    for start, outcome in zip(run.values("start"), run.values("outcome"), strict=True):
        found[start].append(outcome)
    return found


@contextmanager
def free_ports(count: int) -> Iterator[list[int]]:
    """Ports that no other program is given for as long as the block lasts. They are bound, but
    nobody listens there: torch, which shares addresses like this, still can."""
    held = []
    try:
        for _ in range(count):
            one = socket.socket()
            held.append(one)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(("127.0.0.1", 0))
        yield [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()


def main() -> None:
    import torch.distributed as dist

    from ddp_lessons.worker import record

    me, everybody = int(os.environ["RANK"]), range(int(os.environ["WORLD_SIZE"]))
    # The launcher's own store, over which the processes begin and end together.
    common = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    start, process = EVERY[me]
    first = EVERY.index((start, STARTS[start][0]))
    said = {}

    def meet() -> None:
        try:
            # As if RANK and WORLD_SIZE said so; in the environment they are this run's.
            dist.init_process_group("gloo", rank=process.rank, world_size=process.world_size)
            said.update(outcome=GOES_ON)
        except Exception:  # noqa: BLE001  this is what was asked
            said.update(outcome=RAISES)
        said["until"] = time.monotonic()
        common.add("settled", 1)

    with free_ports(2) as ports:
        if me == first:
            common.set(f"ports {start}", "{} {}".format(*ports))
        home, nowhere = common.get(f"ports {start}").decode().split()
        del os.environ["TORCHELASTIC_USE_AGENT_STORE"]  # rank 0 opens a store of its own
        os.environ["MASTER_PORT"] = nowhere if process.lost else home
        together(common, "ready", me, everybody)
        if process.late:
            time.sleep(LATE)
        # A process that waits would do so for half an hour.
        threading.Thread(target=meet, daemon=True).start()
        together(common, "begun", me, everybody)
        until_quiet(common)
        record(
            "judged",
            start=start,
            process=str(process),
            outcome=said.get("outcome", WAITS),
            until=said.get("until"),
        )
        together(common, "judged", me, everybody)  # a group must not lose a member before that


def together(store: object, name: str, me: int, everybody: range) -> None:
    store.set(f"{name} {me}", "")
    store.wait([f"{name} {rank}" for rank in everybody])


def until_quiet(store: object) -> None:
    """Return when nothing has happened to any process for a while, and to some of them before."""
    count, since = 0, time.monotonic()
    while not count or time.monotonic() < since + QUIET:
        now = store.add("settled", 0)
        if now != count:
            count, since = now, time.monotonic()
        time.sleep(0.05)


if __name__ == "__main__":
    main()
