"""Memory that several processes share is counted once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from workshop_memory import Size, descendants, size, together

MIB = 2**20
FORKS = """
import os, sys
block = bytearray(os.urandom(1 << 20) * 100)
pids = []
for _ in range(3):
    pid = os.fork()
    if not pid:
        sys.stdin.read()
        os._exit(0)
    pids.append(pid)
print(*pids, flush=True)
sys.stdin.read()
"""


def test_pages_of_files_count_once_and_what_each_has_written_for_each():
    assert together([Size(10, 5), Size(20, 7)]) == 37
    assert together([]) == 0


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="the system has no PSS")
def test_a_block_that_four_forks_share_counts_once():
    command = [sys.executable, "-c", FORKS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        try:
            pids = [parent.pid, *map(int, parent.stdout.readline().split())]
            used = together([size(psutil.Process(pid)) for pid in pids])
            below = {process.pid for process in descendants([parent.pid])[parent.pid]}
        finally:
            parent.stdin.close()
    assert len(pids) == 4 and below == set(pids[1:])
    assert 100 * MIB < used < 180 * MIB


def test_a_process_that_has_gone_has_no_size():
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        process = psutil.Process(ended.pid)
    assert size(process) == Size(0, 0)
