"""The first module that the worker server imports: from then on it is quiet and deaf to Stop.

The server lives in the kernel's process group and shares its stderr. Stop while it still imports
torch would end it with a traceback in the notebook; so would a rank that fails before it has files
of its own. Importing this module anywhere else does nothing.
"""

import os
import signal

LOG = "DDP_LESSONS_SERVER_LOG"  # set for the server alone: the file that takes what it prints

if LOG in os.environ:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _file = os.open(os.environ.pop(LOG), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(_file, 1)
    os.dup2(_file, 2)
    os.close(_file)
