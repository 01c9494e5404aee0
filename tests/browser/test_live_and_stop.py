"""What a reader sees of a long launch while it runs, the Stop button, and Run All twice."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

LESSON = "notebooks/00_start_here.ipynb"
IMPORTS = "from ddp_lessons import launch, views"
# Prints at once, and ends when a file appears.
UNTIL = """\
%%ranks -n 2
import pathlib, time
import torch.distributed as dist
from ddp_lessons.worker import process_group

with process_group():
    print("rank", dist.get_rank(), "is here", flush=True)
    while not pathlib.Path({stop!r}).exists():
        time.sleep(0.05)
    dist.barrier()
"""


def output(notebook, number: int) -> str:
    """All text of a cell's outputs, as it stands on the page's model."""
    return str(notebook.code_cells()[number]["outputs"])


def number_of(notebook, position: int) -> int:
    """The place among all cells of a code cell, both from 0."""
    kinds = [cell["cell_type"] for cell in notebook.cells()]
    return [n for n, kind in enumerate(kinds) if kind == "code"][position]


@pytest.fixture
def started(open_notebook, tmp_path):
    """A notebook whose second code cell has a launch running, and the file that ends it."""
    notebook, end = open_notebook(LESSON), tmp_path / "end"
    first, second = number_of(notebook, 0), number_of(notebook, 1)
    notebook.clear()
    notebook.write(first, IMPORTS)
    notebook.write(second, UNTIL.format(stop=str(end)))
    notebook.run_cell(first)
    notebook.wait_until_idle()
    notebook.run_cell(second)
    return notebook, end


def wait_for(notebook, text: str) -> None:
    notebook.page.wait_for_function(
        "text => [...document.querySelectorAll('.jp-OutputArea-output')]"
        ".some(o => o.textContent.includes(text))",
        arg=text,
        timeout=60_000,
    )


def test_the_first_line_is_seen_before_the_end_and_leaves_nothing(started):
    notebook, end = started
    wait_for(notebook, "rank 1 is here")
    notebook.shot("live_view_light")
    Path(end).touch()
    notebook.wait_until_idle()
    text = output(notebook, 1)
    assert text.count("is here") == 2 * len(re.findall(r"text/(?:plain|html)", text))
    assert not notebook.complaints


def test_the_stop_button_ends_a_launch_and_the_next_one_works(started):
    notebook, end = started
    wait_for(notebook, "rank 0 is here")
    notebook.page.locator('[data-command="notebook:interrupt-kernel"]').first.click()
    notebook.wait_until_idle()
    assert "KeyboardInterrupt" in output(notebook, 1)
    assert "2 ranks stopped" in output(notebook, 1)
    Path(end).touch()
    notebook.run_cell(number_of(notebook, 1))
    notebook.wait_until_idle()
    assert "2 ranks: ok" in output(notebook, 1)


def test_restart_and_run_all_twice_gives_the_same_text(open_notebook):
    notebook = open_notebook(LESSON)
    texts = []
    for _ in range(2):
        notebook.restart()
        notebook.run_all()
        outputs = [o for cell in notebook.code_cells() for o in cell["outputs"]]
        texts.append([o.get("data", {}).get("text/plain", o.get("text")) for o in outputs])
        assert all(cell["execution_count"] for cell in notebook.code_cells())
    assert texts[0] == texts[1]
    assert not notebook.complaints
