"""What holds workers on Windows, where there are no process groups, FIFOs or signals.

By plan: written from Microsoft's documentation, tested against a stand-in for the system's library,
and never yet run on Windows.
"""

from __future__ import annotations

import ctypes
import os
import threading
from ctypes import c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

SYNCHRONIZE = 0x00100000
INFINITE = 0xFFFFFFFF
EXTENDED_LIMITS = 9  # JobObjectExtendedLimitInformation
KILL_ON_JOB_CLOSE = 0x2000


class BasicLimits(ctypes.Structure):
    """JOBOBJECT_BASIC_LIMIT_INFORMATION"""

    _fields_ = [
        ("process_time", c_int64),
        ("job_time", c_int64),
        ("flags", c_uint32),
        ("least_working_set", c_size_t),
        ("most_working_set", c_size_t),
        ("processes", c_uint32),
        ("affinity", c_size_t),
        ("priority", c_uint32),
        ("scheduling", c_uint32),
    ]


class Limits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION"""

    _fields_ = [("basic", BasicLimits), ("io", c_uint64 * 6), ("memory", c_size_t * 4)]


def hang_on(owner: int) -> None:
    """End this process when the process `owner` ends, and with this process, however it ends, all
    that it has started."""
    library = kernel32()
    take_children_along(library)
    handle = library.OpenProcess(SYNCHRONIZE, False, owner)
    if not handle:  # it has ended
        os._exit(1)

    def watch() -> None:
        library.WaitForSingleObject(handle, INFINITE)
        os._exit(1)

    threading.Thread(target=watch, name="lifeline", daemon=True).start()


def take_children_along(library: Any) -> None:
    """Put this process into a job that the system kills when the job's only handle is closed, which
    is when this process ends. Children that it starts from now on are in the job too."""
    job = library.CreateJobObjectW(None, None)
    limits = Limits()
    limits.basic.flags = KILL_ON_JOB_CLOSE
    size = ctypes.sizeof(limits)
    library.SetInformationJobObject(job, EXTENDED_LIMITS, ctypes.byref(limits), size)
    library.AssignProcessToJobObject(job, library.GetCurrentProcess())


def kernel32() -> Any:
    """The system's library, told that a handle is as wide as a pointer."""
    library = ctypes.WinDLL("kernel32")
    handle, number = c_void_p, c_uint32
    for name, result, arguments in [
        ("CreateJobObjectW", handle, [c_void_p, c_void_p]),
        ("SetInformationJobObject", ctypes.c_int, [handle, ctypes.c_int, c_void_p, number]),
        ("AssignProcessToJobObject", ctypes.c_int, [handle, handle]),
        ("GetCurrentProcess", handle, []),
        ("OpenProcess", handle, [number, ctypes.c_int, number]),
        ("WaitForSingleObject", number, [handle, number]),
    ]:
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
