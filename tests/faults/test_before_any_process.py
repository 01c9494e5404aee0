"""A call that cannot work is refused in one sentence before any process starts."""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from ddp_lessons import launch, launcher

MISTAKES = """
import os, sys, time
sys.path.insert(0, {tests!r})
from processes import marked
from ddp_lessons import launch

def train(rank):
    pass

began = time.monotonic()
for call in (
    lambda: launch(train, 2),
    lambda: launch(lambda: None, 2),
    lambda: launch("no_such_script.py"),
    lambda: launch("broken.py"),
    lambda: launch("hello.py", 0),
    lambda: launch("hello.py", nnodes=2),
):
    try:
        call()
    except Exception as error:
        print(type(error).__name__, "|", error)
print(time.monotonic() - began < 1, "torch" in sys.modules, marked({mark!r}) == {{os.getpid()}})
"""


def test_mistakes_are_refused_in_under_a_second_with_no_process_and_no_import_of_torch(
    script, tmp_path, monkeypatch
):
    script("print('hello')\n", name="hello.py")
    script("x = 1\nif x = 2:\n    pass\n", name="broken.py")
    mark = f"fault-test-{uuid.uuid4()}"
    monkeypatch.setenv("FAULT_TEST", mark)
    code = MISTAKES.format(tests=str(Path(__file__).parent), mark=mark)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    function, nameless, missing, syntax, size, nodes, rest = done.stdout.splitlines()
    assert function.startswith("TypeError | ") and "train()" in function and "%%ranks" in function
    assert nameless.startswith("TypeError | ") and "%%ranks" in nameless
    assert missing.startswith("FileNotFoundError | no script 'no_such_script.py'")
    assert syntax.startswith("ScriptError | broken.py, line 2: SyntaxError: invalid syntax")
    assert size == "ValueError | world_size is a whole number from 1 to 128, not 0"
    assert nodes == 'ValueError | nnodes=2 needs engine="torchrun" or "slurm"'
    assert rest == "True False True"


def test_an_argument_that_cannot_work_starts_nothing(script, monkeypatch):
    def start(*_):
        raise AssertionError("a process would have been started")

    monkeypatch.setattr(launcher.engines, "prepare", start)
    monkeypatch.setattr(launcher.engines, "workers", start)
    hello = script("print('hello')\n")
    for size in (0, -1, 1.5, "4", 1000, True, None):
        with pytest.raises(ValueError, match="world_size is a whole number from 1 to 128, not "):
            launch(hello, size)
    with pytest.raises(ValueError, match="max_restarts=1 needs engine="):
        launch(hello, max_restarts=1)
    with pytest.raises(ValueError, match="engine is one of .*, not 'mpi'"):
        launch(hello, engine="mpi")
