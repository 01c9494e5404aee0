"""A name server that does not answer costs a run no time, and a notebook no line."""

from __future__ import annotations

import os
import subprocess
import sys

from ddp_lessons import launcher, name_server

FIRST = """
import os
from ddp_lessons import launcher

made = []
inner = launcher.store

def store():
    os.write(2, b"a name cannot be retrieved")
    made.append(os.environ.get("RES_OPTIONS"))
    return inner()

launcher.store = store
launcher.import_torch()
launcher.import_torch()
print(made, os.environ.get("RES_OPTIONS"))
"""


def test_ranks_ask_a_name_server_once_and_for_a_second_unless_the_reader_says_otherwise(
    monkeypatch,
):
    monkeypatch.delenv("RES_OPTIONS", raising=False)
    assert launcher.rank_environment(2, {})["RES_OPTIONS"] == "timeout:1 attempts:1"
    assert "RES_OPTIONS" not in os.environ
    monkeypatch.setenv("RES_OPTIONS", "rotate")
    assert launcher.rank_environment(2, {})["RES_OPTIONS"] == "rotate"
    assert launcher.rank_environment(2, {"RES_OPTIONS": "debug"})["RES_OPTIONS"] == "debug"


def test_the_first_store_of_a_process_is_impatient_and_silent_and_leaves_the_environment():
    env = {name: value for name, value in os.environ.items() if name != "RES_OPTIONS"}
    command = [sys.executable, "-c", FIRST]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("['timeout:1 attempts:1'] None\n", "")


def test_only_the_line_about_names_is_left_out_of_what_a_rank_said():
    line = "[W1130 02:59:09.247 socket.cpp:207] [c10d] The hostname of the client socket cannot be "
    said = f"before\n{line}retrieved. err=-3\n[W1130 02:59:09.248] [c10d] a real one\n"
    assert name_server.without_complaint(said) == "before\n[W1130 02:59:09.248] [c10d] a real one\n"
