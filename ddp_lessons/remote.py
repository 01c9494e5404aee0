"""What holds a rank on another machine: it looks into the run's folder, which both share.

A FIFO joins the processes of one machine only, and so do signals.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
import time
from pathlib import Path

from ddp_lessons import guard

OVER, ASKED = "over", "asked"  # files in the run's folder: the run has ended; write your stack
PAUSE = 0.2  # seconds between two looks


def hang_on(folder: Path, stack: Path) -> None:
    """Kill this process's group, and all that it has started, once the run in `folder` is over
    or its folder has gone. Write this process's Python stack when that is asked for."""

    def watch() -> None:
        asked = False
        while folder.exists() and not (folder / OVER).exists():
            if not asked and (folder / ASKED).exists():
                asked = True
                with open(stack, "w", encoding="utf-8") as file:
                    faulthandler.dump_traceback(file, all_threads=True)
            time.sleep(PAUSE)
        guard.end_all()
        os.killpg(os.getpgrp(), signal.SIGKILL)

    threading.Thread(target=watch, name="remote", daemon=True).start()
