"""A browser and a JupyterLab for the tests here, once a session."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("playwright")

import lab  # noqa: E402


@pytest.fixture(scope="session")
def browser():
    if not lab.CHROMIUM:
        if "chromium" in os.environ.get("DDP_LESSONS_REQUIRE", ""):
            pytest.fail(lab.MISSING)
        pytest.skip(lab.MISSING)
    with lab.browser() as started:
        yield started


@pytest.fixture(scope="session")
def address(browser, tmp_path_factory):
    with lab.served(tmp_path_factory.mktemp("lab")) as found:
        yield found


@pytest.fixture
def open_notebook(browser, address):
    """A function that opens a notebook, such as "notebooks/04_collectives.ipynb"."""
    pages = []

    def opened(path: str) -> lab.Notebook:
        # So high that Lab draws every cell.
        page = browser.new_page(viewport={"width": 1250, "height": 14_000})
        pages.append(page)
        return lab.Notebook(page, address, path)

    yield opened
    for page in pages:
        page.evaluate("() => window.jupyterapp.serviceManager.sessions.shutdownAll()")
        page.close()
