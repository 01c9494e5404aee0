"""A JupyterLab that cannot show widgets: what stands in their place."""

from __future__ import annotations

import pytest

import lab

pytestmark = pytest.mark.slow

WIDGETS = "@jupyter-widgets/jupyterlab-manager"
LESSONS = ("05_ring_all_reduce", "07_distributed_sampler")


@pytest.fixture(scope="module")
def address(browser, tmp_path_factory):
    """In place of the JupyterLab of the other tests."""
    with lab.served(tmp_path_factory.mktemp("lab"), without=[WIDGETS]) as found:
        yield found


@pytest.mark.parametrize("lesson", LESSONS)
def test_picture_and_sentence_are_there(lesson: str, open_notebook):
    notebook = open_notebook(f"notebooks/{lesson}.ipynb")
    notebook.run_all()
    outputs = [o for cell in notebook.code_cells() for o in cell["outputs"]]
    [shown] = [o["data"] for o in outputs if lab.WIDGET in o.get("data", {})]
    output = notebook.page.locator(".jp-OutputArea-output", has_text="".join(shown["text/plain"]))
    picture = output.locator("img").first
    picture.wait_for()  # the other one is folded
    assert picture.evaluate("i => i.complete && i.naturalWidth > 50 && i.clientHeight > 50")
