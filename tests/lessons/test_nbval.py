"""`pytest --nbval` with the root conftest notices what it is there to notice."""

from __future__ import annotations

import copy
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

ROOT = Path(__file__).resolve().parents[2]
WIDGET = """
import sys
print("warned", file=sys.stderr)

class Rich:
    def __repr__(self):
        return "rank 1 has 1.5"
    def _repr_html_(self):
        return f"<b>{id(self)} took 0.31 s</b>"
    def _repr_svg_(self):
        return f"<svg id='{id(self)}'/>"

Rich()
""".strip()


def executed() -> nbformat.NotebookNode:
    """Three cells with what they print, return and raise; HTML and SVG as in another run."""
    cells = [
        new_code_cell(
            "print('rank 0 has 3')",
            outputs=[new_output("stream", name="stdout", text="rank 0 has 3\n")],
        ),
        new_code_cell(
            WIDGET,
            outputs=[
                new_output(
                    "execute_result",
                    execution_count=2,
                    data={
                        "text/html": "<b>7 took 0.29 s</b>",
                        "image/svg+xml": "<svg id='7'/>",
                        "text/plain": "rank 1 has 1.5",
                    },
                )
            ],
        ),
        new_code_cell(
            "raise ValueError('line 4')",
            metadata={"tags": ["raises-exception"]},
            outputs=[new_output("error", ename="ValueError", evalue="line 4", traceback=[])],
        ),
    ]
    for count, cell in enumerate(cells, 1):
        cell.execution_count = count
    # The user's machine may have a kernel of this name that is not ours, or none of that name.
    return new_notebook(
        cells=cells, metadata={"kernelspec": {"name": "nobody's", "display_name": ""}}
    )


def edited(number: int) -> nbformat.NotebookNode:
    """The notebook with one digit of one output's text changed."""
    notebook = copy.deepcopy(executed())
    output = notebook.cells[number].outputs[0]
    if number == 0:
        output.text = output.text.replace("3", "4")
    elif number == 1:
        output.data["text/plain"] = output.data["text/plain"].replace("1.5", "1.6")
    else:
        output.evalue = output.evalue.replace("4", "5")
    return notebook


def unexecuted() -> nbformat.NotebookNode:
    notebook = executed()
    notebook.cells[1].execution_count = None
    notebook.cells[1].outputs = []
    return notebook


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What plain `pytest --nbval notebooks` says, without flags, about a folder of notebooks."""
    root = tmp_path_factory.mktemp("clone")
    shutil.copy(ROOT / "conftest.py", root)
    (root / "notebooks").mkdir()
    books = {"whole": executed(), "unexecuted": unexecuted()}
    books |= {f"edited_{number}": edited(number) for number in range(3)}
    for name, notebook in books.items():
        nbformat.write(notebook, root / "notebooks" / f"{name}.ipynb")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-rA",
        "-p",
        "no:cacheprovider",
        "--nbval",
        "notebooks",
    ]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def verdicts(report: str, notebook: str) -> list[str]:
    """How the cells of a notebook ended, in order."""
    ends = re.findall(rf"^([A-Z]+) \S*/{notebook}\.ipynb::Cell (\d+)", report, re.MULTILINE)
    return [end for end, _ in sorted(ends, key=lambda pair: int(pair[1]))]


def test_an_unedited_notebook_passes_on_this_environments_kernel(report: str):
    assert verdicts(report, "whole") == ["PASSED", "PASSED", "PASSED"]


@pytest.mark.parametrize("number", range(3))
def test_one_changed_digit_in_an_output_fails_and_names_the_cell(report: str, number: int):
    wanted = ["PASSED"] * 3
    wanted[number] = "FAILED"
    assert verdicts(report, f"edited_{number}") == wanted


def test_a_cell_that_was_never_executed_fails(report: str):
    assert verdicts(report, "unexecuted")[1] == "ERROR"
    assert "was never executed" in report


def test_tests_are_collected_without_nbval():
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:nbval",
        "--collect-only",
        "-q",
        "tests/lessons",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
