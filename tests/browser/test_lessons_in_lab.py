"""Every lesson and solution, opened and run in a real JupyterLab."""

from __future__ import annotations

import nbformat
import pytest

import lab

PATHS = [
    f"{folder}/{path.name}"
    for folder in ("notebooks", "solutions")
    for path in sorted((lab.ROOT / folder).glob("[0-9]*.ipynb"))
]
# Two lessons with all that the others have: tables and pictures; a step player.
ALWAYS = ("notebooks/04_collectives.ipynb", "notebooks/05_ring_all_reduce.ipynb")


def marked(path: str):
    slow = () if path in ALWAYS else pytest.mark.slow
    return pytest.param(path, id=path.removesuffix(".ipynb"), marks=slow)


def errors(cell: dict) -> list[str]:
    return [o["evalue"] for o in cell["outputs"] if o["output_type"] == "error"]


def is_tagged(cell: dict) -> bool:
    return "raises-exception" in cell["metadata"].get("tags", [])


def pictures(cell: dict) -> int:
    return sum("image/png" in o.get("data", {}) for o in cell["outputs"])


def text(output: dict) -> str:
    """What nbval compares of an output, whichever program ran the cell."""
    found = output.get("data", {}).get("text/plain", output.get("text", output.get("evalue", "")))
    return "".join(found).rstrip()


@pytest.mark.parametrize("path", [marked(path) for path in PATHS])
def test_a_notebook_runs_in_jupyterlab(path: str, open_notebook):
    notebook = open_notebook(path)
    name = path.removesuffix(".ipynb").replace("/", "_")
    notebook.run_all()
    cells = notebook.code_cells()
    committed = nbformat.read(lab.ROOT / path, as_version=4)
    ran_before = [cell for cell in committed.cells if cell.cell_type == "code"]
    for cell, before in zip(cells, ran_before, strict=True):
        assert bool(errors(cell)) == is_tagged(cell), cell["source"]
        told = [text(o) for o in cell["outputs"] if lab.WIDGET not in o.get("data", {})]
        assert told == [text(o) for o in before.outputs], cell["source"]
        assert not [o for o in cell["outputs"] if o.get("name") == "stderr"], cell["source"]
    # A folded one is a copy for a page that is saved without its widgets.
    drawn = notebook.page.locator(".jp-OutputArea-output img:not(details:not([open]) img)")
    drawn.first.wait_for()
    assert drawn.count() >= sum(map(pictures, cells)) > 0
    for picture in drawn.all():
        width, height = picture.evaluate("i => [i.complete && i.naturalWidth, i.clientHeight]")
        assert width > 50 and height > 50
    for theme in ("light", "dark"):
        notebook.theme(theme)
        notebook.shot(f"{name}_{theme}")
    assert not notebook.complaints
