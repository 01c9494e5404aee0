"""A name server that does not answer costs a run no time, and a notebook no line."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from ddp_lessons import launcher, name_server

FIRST = """
import ctypes
import os
import socket
from ddp_lessons import launcher

made = []
inner = launcher.store
libc = ctypes.CDLL(None)
state = libc["__res_state"]
state.restype = ctypes.POINTER(ctypes.c_int)

def patience():
    return state()[0], state()[1]

def store():
    os.write(2, b"a name cannot be retrieved")
    made.append(patience())
    return inner()

launcher.store = store
launcher.import_torch()
launcher.import_torch()
libc["__res_init"]()
print(made, patience(), os.environ.get("RES_OPTIONS"))
"""

TWO_THREADS = """
import contextlib, os, threading, time
from ddp_lessons import name_server

@contextlib.contextmanager
def store():
    time.sleep(0.5)
    yield

threads = [threading.Thread(target=name_server.settle, args=[store]) for _ in range(2)]
for thread in threads:
    thread.start()
    time.sleep(0.2)
for thread in threads:
    thread.join()
os.write(2, b"heard")
print(os.environ.get("RES_OPTIONS"))
"""


def test_ranks_ask_a_name_server_for_a_second_at_a_time_unless_the_reader_says_otherwise(
    monkeypatch,
):
    monkeypatch.delenv("RES_OPTIONS", raising=False)
    assert launcher.rank_environment(2, {})["RES_OPTIONS"] == "timeout:1 attempts:2"
    assert "RES_OPTIONS" not in os.environ
    monkeypatch.setenv("RES_OPTIONS", "rotate")
    assert launcher.rank_environment(2, {})["RES_OPTIONS"] == "rotate"
    assert launcher.rank_environment(2, {"RES_OPTIONS": "debug"})["RES_OPTIONS"] == "debug"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_the_first_store_is_impatient_and_silent_and_the_readers_lookups_are_as_before():
    env = {name: value for name, value in os.environ.items() if name != "RES_OPTIONS"}
    command = [sys.executable, "-c", FIRST]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("[(1, 2)] (5, 2) None\n", "")


def test_two_threads_that_launch_at_once_do_not_cost_the_process_its_stderr():
    env = {name: value for name, value in os.environ.items() if name != "RES_OPTIONS"}
    command = [sys.executable, "-c", TWO_THREADS]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("None\n", "heard")


def test_only_the_line_about_names_is_left_out_of_what_a_rank_said():
    line = "[W1130 02:59:09.247 socket.cpp:207] [c10d] The hostname of the client socket cannot be "
    said = f"before\n{line}retrieved. err=-3\n[W1130 02:59:09.248] [c10d] a real one\n"
    assert name_server.without_complaint(said) == "before\n[W1130 02:59:09.248] [c10d] a real one\n"
