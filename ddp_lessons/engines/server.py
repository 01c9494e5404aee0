"""The first module that the worker server imports: it makes the server quiet and mortal.

The server shares the kernel's stderr, where a rank that fails before it has files of its own would
leave a traceback in the notebook. A kernel that dies while the server still imports torch would
leave it behind until that is done. Importing this module anywhere else does nothing.
"""

import os
from pathlib import Path

from ddp_lessons import guard, lifeline

HOME = "DDP_LESSONS_SERVER"  # set for the server alone: the folder with its log and its lifeline


def settle(home: Path) -> None:
    log = os.open(home / "server.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    guard.stand(home)
    lifeline.hang_on_without_a_thread(home)


if HOME in os.environ:
    settle(Path(os.environ.pop(HOME)))
