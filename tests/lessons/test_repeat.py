"""Repeating the notebooks finds an output that differs once in a while."""

from __future__ import annotations

import os

import nbformat
import psutil
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

import repeat

# Its output is another one in every second run.
NOW_AND_THEN = """\
import pathlib
mark = pathlib.Path({mark!r})
there = mark.exists()
mark.unlink() if there else mark.touch()
print(there)
"""


@pytest.mark.slow
def test_a_run_that_differs_is_counted_and_shown(tmp_path, capsys):
    source = NOW_AND_THEN.format(mark=str(tmp_path / "mark"))
    output = new_output("stream", name="stdout", text="False\n")
    cell = new_code_cell(source, execution_count=1, outputs=[output])
    notebook = new_notebook(cells=[cell])
    nbformat.write(notebook, tmp_path / "now_and_then.ipynb")
    assert repeat.repeat(3, [str(tmp_path)]) == 1
    told = capsys.readouterr().out
    assert "2 of 3 on" in told and "1 of 3 runs differed" in told
    assert "Cell 0" in told


def test_a_run_shares_its_core_with_a_process_that_never_rests():
    before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    with repeat.busy():
        others = [one for one in psutil.Process().children() if one.cmdline() == repeat.RESTLESS]
        assert others
        if before:
            assert os.sched_getaffinity(0) == {min(before)}
            assert [one.cpu_affinity() for one in others] == [[min(before)]] * len(others)
    assert not any(one.is_running() for one in others)
    assert before is None or os.sched_getaffinity(0) == before
