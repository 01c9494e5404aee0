"""A browser and a JupyterLab for the tests here, once a session."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("playwright")

import lab  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402

MISSING = (
    "no chromium here. On Debian and Ubuntu: sudo apt install chromium fonts-dejavu-core. "
    "Elsewhere: any Chromium on PATH"
)


@pytest.fixture(scope="session")
def browser():
    if not lab.CHROMIUM:
        if "chromium" in os.environ.get("DDP_LESSONS_REQUIRE", ""):
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=lab.CHROMIUM, args=lab.FLAGS)
        yield started
        started.close()


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
        page = browser.new_page(viewport={"width": 1250, "height": 12_000})
        pages.append(page)
        return lab.Notebook(page, address, path)

    yield opened
    for page in pages:
        page.evaluate("() => window.jupyterapp.serviceManager.sessions.shutdownAll()")
        page.close()
