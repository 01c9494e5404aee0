"""The pictures that the lessons and solutions really draw, looked at where they are drawn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from nbformat import read
from nbformat.v4 import new_code_cell

from execute import execute

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted(
    path for part in ("notebooks", "solutions") for path in (ROOT / part).glob("*.ipynb")
)
# looks.py is beside the tests of the views.
LOOK = f"""
import sys
sys.path.append({str(ROOT / "tests" / "unit")!r})
import looks
_looking = looks.looked_at()
_looked = _looking.__enter__()
"""
TELL = "import json; print(json.dumps([told for _, those in _looked for told in those]))"


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_picture_of_a_notebook_can_be_read_in_both_themes(path):
    notebook = read(path, as_version=4)
    notebook.cells = [new_code_cell(LOOK), *notebook.cells, new_code_cell(TELL)]
    execute(notebook, path.parent)
    assert json.loads(notebook.cells[-1].outputs[0].text) == []
