"""What a script may expect of a rank because Python does it, and what it may do by mistake."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys

import pytest

from ddp_lessons import WorkerError, launch
from ddp_lessons.lifeline import _held, hold


def test_annotations_are_evaluated_unless_the_script_says_otherwise(script):
    path = script("""
        from ddp_lessons.worker import record
        def f(x: int): ...
        record("f", annotation=repr(f.__annotations__["x"]))
    """)
    assert launch(path, 1).values("annotation") == ["<class 'int'>"]


def test_a_name_that_only_an_annotation_uses_is_missed_as_in_python(script):
    with pytest.raises(WorkerError, match="NameError: name 'B' is not defined"):
        launch(script("def f() -> B: pass\n"), 1)


def test_standard_input_is_empty_for_a_ranks_children_too(script):
    path = script("""
        import subprocess
        from ddp_lessons.worker import record
        record("cat", read=subprocess.run("cat", capture_output=True, text=True).stdout)
    """)
    program = f"from ddp_lessons import launch; print(launch({str(path)!r}, 1).values('read'))"
    done = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert done.stdout.read() == "['']\n"  # the pipe to its stdin is still open
    done.stdin.close()
    assert done.wait(60) == 0


@pytest.mark.parametrize("setting", ["", "2,1", "0", "many"])
def test_an_odd_number_of_threads_stops_no_launch(script, setting):
    path = script("""
        import torch
        from ddp_lessons.worker import record
        record("threads", threads=torch.get_num_threads())
    """)
    assert launch(path, 1, env={"OMP_NUM_THREADS": setting}).values("threads")[0] >= 1


def test_a_script_that_closes_its_stdout_still_comes_to_its_end(script):
    assert launch(script("import os\nprint('abc', end='')\nos.close(1)\n"), 1).ok


def test_an_exception_that_cannot_say_its_message_is_reported(script):
    path = script("""
        class Mute(Exception):
            def __str__(self):
                raise ValueError
        raise Mute
    """)
    with pytest.raises(WorkerError, match="line 4: Mute: .its message cannot be had"):
        launch(path, 1)


def test_a_line_that_is_no_record_costs_no_run(script):
    path = script("""
        import os
        from ddp_lessons.worker import record
        open(os.environ["DDP_LESSONS_RECORDS"], "a").write("hello\\n[]\\n{}\\n")
        record("a", x=1)
    """)
    assert launch(path, 1).values("x") == [1]


def test_a_cell_imports_what_lies_in_the_current_folder(script, tmp_path, monkeypatch):
    (tmp_path / "helper_of_a_reader.py").write_text("x = 5\n")
    (tmp_path / "apart").mkdir()
    path = script("import helper_of_a_reader\n", name="apart/cell.py")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", tmp_path / "a path, not text", *sys.path])
    assert launch(path, 1).ok


def test_a_forked_child_does_not_hold_the_ranks_alive(tmp_path):
    cut = hold(tmp_path)
    end = _held[-1][0]
    child = multiprocessing.get_context("fork").Process(target=still_open, args=(end,))
    child.start()
    child.join(60)
    cut()
    assert child.exitcode == 7


def still_open(end: int) -> None:
    try:
        os.fstat(end)
    except OSError:
        os._exit(7)
    os._exit(0)


def test_a_folder_that_was_tidied_away_is_made_anew(script, tmp_path):
    program = """
import shutil
from ddp_lessons import folders, launch
launch("00_start_here/hello.py", 1)
shutil.rmtree(folders.session())
assert launch("00_start_here/hello.py", 1).ok
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_long_temporary_folder_works(tmp_path, monkeypatch):
    long = tmp_path / ("x" * 104)
    long.mkdir()
    program = "from ddp_lessons import launch; assert launch('00_start_here/add.py').ok"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "TMPDIR": str(long)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_a_hard_coded_address_is_named_at_the_limit(script, warm):
    path = script("""
        import os
        import torch.distributed as dist
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", "1"
        dist.init_process_group("gloo")
    """)
    with pytest.raises(WorkerError, match="They meet at tcp://localhost:1"):
        launch(path, 2, timeout=2)
