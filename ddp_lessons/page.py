"""The output area of the cell that runs now: something to see for a while, and no trace of it."""

from __future__ import annotations

import ast
import contextlib
import os
import signal
import sys
import threading
import uuid
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ipykernel.zmqshell import ZMQInteractiveShell

SWITCH = "DDP_LESSONS_LIVE"  # 1 and 0 overrule what the front end says of itself
KEEP = 1_000_000  # characters of a cell's output that are kept, to be sent once more


class Cell:
    """What the cell that runs now has published, as far as hooks can see it.

    The session counts every message that the kernel makes. While that count agrees with what the
    hooks saw, nothing is in the cell's output area that is not in `messages`.
    """

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self._start: int | None = None  # the session's count at the start of the cell
        self._size = 0

    def begin(self, count: int | None, messages: tuple[dict[str, Any], ...] = ()) -> None:
        self._start, self._size = count, 0
        self.messages[:] = messages

    def saw(self, message: dict[str, Any]) -> dict[str, Any]:
        """A hook: called with each message before it is sent, on any thread."""
        if self._start is not None:
            self._size += len(repr(message["content"]))
            if self._size > KEEP:
                self.begin(None)
            else:
                self.messages.append(message)
        return message

    def is_known(self, count: int) -> bool:
        return self._start is not None and count == self._start + len(self.messages)


_cell = Cell()


def register(shell: ZMQInteractiveShell) -> None:
    """From now on, know what each cell of this kernel has published."""
    session = shell.display_pub.session
    shell.events.register("pre_run_cell", lambda _: _cell.begin(session.message_count))
    for publisher in (shell.display_pub, shell.displayhook):
        if hasattr(publisher, "register_hook"):
            publisher.register_hook(_cell.saw)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "pub_thread") and hasattr(stream, "register_hook"):
            # A hook works on the thread that registers it, and streams are sent from one of theirs.
            stream.pub_thread.schedule(partial(stream.register_hook, _cell.saw))
    if only_imports(shell.kernel.get_parent().get("content", {}).get("code", "")):
        _cell.begin(session.message_count)


def only_imports(code: str) -> bool:
    """Whether the cell has done nothing but imports when it imports this package."""
    try:
        statements = ast.parse(code).body
    except SyntaxError:  # a magic
        return False
    for statement in statements:
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            return False
        if "ddp_lessons" in ast.unparse(statement):
            return True
    return False


def live_page() -> Page | None:
    """The running cell's output area, if somebody is there to look at it, else None.

    A live front end answers input(), which nbclient and nbval do not. Only the main thread's
    launches are shown: several at once would share one area. Plain Python has none.
    """
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if not hasattr(getattr(shell, "kernel", None), "get_parent"):
        return None
    if not hasattr(shell.display_pub, "register_hook"):  # %%capture is at work
        return None
    if threading.current_thread() is not threading.main_thread():
        return None
    answers = shell.kernel.get_parent().get("content", {}).get("allow_stdin", False)
    wish = os.environ.get(SWITCH)
    return Page(shell) if (wish == "1" if wish in ("0", "1") else answers) else None


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Let Stop act after the block, not within: a message half-way out would be in no count."""
    pressed: list[tuple] = []
    before = signal.signal(signal.SIGINT, lambda *press: pressed.append(press))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if pressed and callable(before):
            before(*pressed[0])


class Page:
    """One display in the cell's output area, drawn again and again until it is taken away."""

    def __init__(self, shell: ZMQInteractiveShell):
        self._publisher = shell.display_pub
        self._id = f"ddp-lessons-{uuid.uuid4().hex}"
        self._drawn = False

    def draw(self, html: str) -> None:
        """Show this instead of what was shown before, if it can be taken away again."""
        # Inside an ipywidgets.Output, for one, it could not. Its messages are among the unknown.
        with undisturbed():
            if self._drawn or self._knows_all():
                self._publish({"text/html": html})
                self._drawn = True

    def take_away(self) -> None:
        """Leave the output area as if nothing had been drawn.

        No message removes a single output, so the area is cleared and what else was there is sent
        once more. If something unknown was published meanwhile, by another thread for example, an
        output without content stays behind instead.
        """
        if self._drawn:
            with undisturbed():
                if self._knows_all():
                    self._clear()
                else:
                    self._publish({})

    def _clear(self) -> None:
        publisher, session = self._publisher, self._publisher.session
        count = session.message_count
        parent = publisher.parent_header
        others = [message for message in _cell.messages if self._is_other(message, parent)]
        publisher.clear_output()
        for message in others:
            session.send(
                publisher.pub_socket,
                message["header"]["msg_type"],
                message["content"],
                parent=message["parent_header"],
                ident=publisher.topic,
            )
        _cell.begin(count + 1, tuple(others))

    def _knows_all(self) -> bool:
        sys.stdout.flush()
        sys.stderr.flush()
        return _cell.is_known(self._publisher.session.message_count)

    def _publish(self, data: dict[str, str]) -> None:
        self._publisher.publish(data, transient={"display_id": self._id}, update=self._drawn)

    def _is_other(self, message: dict[str, Any], parent: dict[str, Any]) -> bool:
        if message["parent_header"].get("msg_id") != parent.get("msg_id"):
            return False  # another cell's, which keeps what it has
        return message["content"].get("transient", {}).get("display_id") != self._id
