"""What the fault tests share: looking at real processes, and kernels to start, stop and kill."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jupyter_client import KernelManager

GENEROUS = 60.0  # seconds for what has to come but not at once


def until(condition: Callable[[], Any], seconds: float = GENEROUS) -> Any:
    """The first true value of condition(); fails after that many seconds without one."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {condition.__name__}"
        time.sleep(0.01)
    return value


def marked(mark: str) -> set[int]:
    """The living processes that were started with `mark` in their environment, or forked later from
    such a process. One that has died and is not yet reaped does not count: it shows none."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found.add(int(folder.name))
        except OSError:
            continue  # it has ended meanwhile, or is somebody else's
    return found


def told(pid: int) -> list[str]:
    """The command line of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def gone(find: Callable[[], set[int]], seconds: float) -> None:
    """Fails, with the command lines, if after that many seconds find() still finds a process."""
    deadline = time.monotonic() + seconds
    while left := find():
        lines = [" ".join(told(pid))[:200] for pid in left]
        assert time.monotonic() < deadline, f"alive after {seconds} s: {lines}"
        time.sleep(0.01)


def in_groups(leaders: Iterable[int]) -> set[int]:
    """The living processes in the process groups that these processes lead or led."""
    leaders, found = set(leaders), set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, group = stat.read_text(errors="replace").rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(group) in leaders and state != "Z":
            found.add(int(stat.parent.name))
    return found


class Kernel:
    """A real ipykernel. Everything that it starts carries `mark` in its environment."""

    def __init__(self) -> None:
        self.mark = f"fault-test-{uuid.uuid4()}"
        self._manager = KernelManager(kernel_name="python3")
        # pytest's own variable would change how ipykernel captures what its children print.
        env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
        env["FAULT_TEST"] = self.mark
        self._manager.start_kernel(env=env)
        self._client = self._manager.client()
        self._client.start_channels()
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Until the kernel answers: it does not at once after a start or a restart."""
        self._client.wait_for_ready(timeout=GENEROUS)

    @property
    def pid(self) -> int:
        return self._manager.provisioner.process.pid

    def others(self) -> set[int]:
        """What lives of all that the kernel has started."""
        return marked(self.mark) - {self.pid}

    def begin(self, code: str) -> str:
        """Run a cell without waiting for its end; returns what reply() wants."""
        return self._client.execute(code)

    def reply(self, cell: str) -> dict[str, Any]:
        """A cell's reply, which says "ok" or has the exception."""
        while True:
            message = self._client.get_shell_msg(timeout=GENEROUS)
            if message["parent_header"].get("msg_id") == cell:
                return message["content"]

    def run(self, code: str) -> str:
        """Run a cell to its end; returns all that it printed, stderr included."""
        printed = []

        def hook(message: dict) -> None:
            printed.append(message["content"].get("text", ""))

        reply = self._client.execute_interactive(code, timeout=GENEROUS, output_hook=hook)
        # For a moment after a cell that failed, the kernel drops what was sent to it meanwhile.
        while reply["content"]["status"] == "aborted":
            reply = self._client.execute_interactive(code, timeout=GENEROUS, output_hook=hook)
        assert reply["content"]["status"] == "ok", reply["content"].get("evalue")
        return "".join(printed)

    def messages(
        self, code: str, seen: Callable[[str, dict], Any] = lambda *_: None, stdin: bool = True
    ) -> list[tuple[str, dict]]:
        """Run a cell to its end, good or bad; returns what it published, as (type, content). seen()
        gets each as it comes. `stdin` is whether the front end says that it can answer input()."""
        cell, published = self._client.execute(code, allow_stdin=stdin), []
        while True:
            message = self._client.get_iopub_msg(timeout=GENEROUS)
            if message["parent_header"].get("msg_id") != cell:
                continue
            published.append((message["msg_type"], message["content"]))
            if published[-1] == ("status", {"execution_state": "idle"}):
                self.reply(cell)
                return published
            seen(*published[-1])

    def interrupt(self) -> None:
        self._manager.interrupt_kernel()

    def restart(self) -> None:
        self._manager.restart_kernel(now=True)

    def shut_down(self) -> None:
        """Ask the kernel to end, and wait until it has, by itself."""
        self._manager.shutdown_wait_time = GENEROUS
        self._manager.shutdown_kernel(now=False)

    def close(self) -> None:
        self._client.stop_channels()
        if self._manager.has_kernel:
            self._manager.shutdown_kernel(now=True)


@contextmanager
def kernel() -> Iterator[Kernel]:
    started = Kernel()
    try:
        yield started
    finally:
        started.close()
        for pid in marked(started.mark):  # only if the test has failed
            os.kill(pid, 9)
