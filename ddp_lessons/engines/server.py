"""The first module that the worker server imports: it makes the server quiet, deaf to Stop, and
mortal.

The server lives in the kernel's process group and shares its stderr: Stop while it still imports
torch would end it with a traceback in the notebook, and so would a rank that fails before it has
files of its own. A kernel that dies meanwhile would leave it behind until the import is done.
Importing this module anywhere else does nothing.
"""

import os
import signal
from pathlib import Path

from ddp_lessons import lifeline

HOME = "DDP_LESSONS_SERVER"  # set for the server alone: the folder with its log and its lifeline


def settle(home: Path) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    log = os.open(home / "server.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    lifeline.hang_on_without_a_thread(home)


if HOME in os.environ:
    settle(Path(os.environ.pop(HOME)))
