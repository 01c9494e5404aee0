"""A browser, a JupyterLab of one's own, and what a reader does in it, through Playwright.

Cells are read from the notebook's model, since Lab draws only those in view.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("notebooks", "solutions", "exercises")
SHOTS = ROOT / "build" / "screenshots"
# The first asks to be switched on; the second complains of each restart that it meets.
SWITCHED_OFF = ("@jupyterlab/apputils-extension:announcements", "@jupyterlab/debugger-extension")
WIDGET = "application/vnd.jupyter.widget-view+json"
PATIENCE = 300_000  # milliseconds
NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((path for name in NAMES if (path := shutil.which(name))), "")
MISSING = (
    "no chromium here. On Debian and Ubuntu: sudo apt install chromium fonts-dejavu-core. "
    "Elsewhere: any Chromium on PATH"
)
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
]

READY = """() => {
    const session = window.jupyterapp?.shell.currentWidget?.sessionContext;
    const kernel = session?.session?.kernel;
    return session?.isReady && kernel?.connectionStatus === 'connected' && kernel.status === 'idle';
}"""
CELLS = """() => {
    const cells = window.jupyterapp.shell.currentWidget.content.model.cells;
    return [...Array(cells.length).keys()].map(i => cells.get(i)).map(c => c.toJSON());
}"""


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """The Chromium of this computer. There must be one."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield started
        finally:
            started.close()


@contextlib.contextmanager
def served(folder: Path, without: Sequence[str] = ()) -> Iterator[str]:
    """JupyterLab on a copy of the notebooks in `folder`, with settings of its own, and without
    some of its extensions; yields its address."""
    for name in FOLDERS:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / "course" / name)
    own = {
        name: str(folder / name.lower())
        for name in (
            *("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"),
            *("JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR"),
        )
    }
    page_config = Path(own["JUPYTER_CONFIG_DIR"], "labconfig", "page_config.json")
    page_config.parent.mkdir(parents=True)
    off = dict.fromkeys((*SWITCHED_OFF, *without), True)
    page_config.write_text(json.dumps({"disabledExtensions": off}))
    env = {**os.environ, **own, "JUPYTER_PATH": str(Path(sys.prefix, "share", "jupyter"))}
    env.pop("PYTEST_CURRENT_TEST", None)  # a kernel that finds it captures no output of processes
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--expose-app-in-browser"),
        *(f"--ServerApp.port={port}", "--ServerApp.port_retries=0", "--IdentityProvider.token="),
        *(f"--ServerApp.root_dir={folder / 'course'}", "--allow-root"),
    ]
    address = f"http://127.0.0.1:{port}"
    with open(folder / "lab.log", "wb") as log:
        server = subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 120
        while not answers(f"{address}/api"):
            assert server.poll() is None, (folder / "lab.log").read_text()
            assert time.monotonic() < deadline, "JupyterLab does not answer"
            time.sleep(0.2)
        yield address
    finally:
        server.terminate()  # it ends its kernels
        server.wait(timeout=60)


def answers(address: str) -> bool:
    try:
        return urllib.request.urlopen(address, timeout=5).status == 200
    except OSError:
        return False


class Notebook:
    """One notebook, open in a page of its own."""

    def __init__(self, page: Page, address: str, path: str):
        self.page, self.path = page, path
        self.complaints: list[str] = []
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.goto(f"{address}/lab/tree/{path}?reset")
        page.wait_for_function(READY, timeout=PATIENCE)
        self.command("application:toggle-left-area")

    def _heard(self, message: Any) -> None:
        if message.type == "error":
            self.complaints.append(f"{message.text} ({message.location.get('url', '')})")

    def command(self, name: str, **arguments: Any) -> None:
        """Run one of Lab's commands, without waiting for its end."""
        code = "([name, args]) => { window.jupyterapp.commands.execute(name, args) }"
        self.page.evaluate(code, [name, arguments])

    def cells(self) -> list[dict]:
        return self.page.evaluate(CELLS)

    def code_cells(self) -> list[dict]:
        return [cell for cell in self.cells() if cell["cell_type"] == "code"]

    def clear(self) -> None:
        self.command("notebook:clear-all-cell-outputs")

    def run_all(self) -> None:
        """Run every cell, from no outputs, and wait for the last one's end."""
        self.clear()
        self.page.wait_for_function(
            f"() => ({CELLS})().every(c => c.cell_type !== 'code' || !c.execution_count)"
        )
        self.command("notebook:run-all-cells")
        self.page.wait_for_function(
            f"() => ({CELLS})().every(c => c.cell_type !== 'code' || c.execution_count)"
            f" && ({READY})()",
            timeout=PATIENCE,
        )

    def run_cell(self, number: int) -> None:
        """Start one cell, counted from 0 among all, without waiting for its end."""
        self.page.evaluate(
            "n => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = n }", number
        )
        self.command("notebook:run-cell")

    def wait_until_idle(self) -> None:
        self.page.wait_for_function(READY, timeout=PATIENCE)

    def write(self, number: int, source: str) -> None:
        """Put other code into a cell."""
        self.page.evaluate(
            "([n, text]) => window.jupyterapp.shell.currentWidget.content.model.cells.get(n)"
            ".sharedModel.setSource(text)",
            [number, source],
        )

    def restart(self) -> None:
        self.page.evaluate(
            "() => window.jupyterapp.shell.currentWidget.sessionContext.restartKernel()"
        )
        self.wait_until_idle()

    def theme(self, name: str) -> None:
        self.page.evaluate(
            "name => window.jupyterapp.commands.execute('apputils:change-theme', {theme: name})",
            f"JupyterLab {name.capitalize()}",
        )
        self.page.wait_for_function(
            "light => document.body.dataset.jpThemeLight === light",
            arg=str(name == "light").lower(),
        )
        # Lab covers the page meanwhile, and the cover fades.
        self.page.wait_for_function("() => !document.getElementById('jupyterlab-splash')")

    def shot(self, name: str) -> Path:
        SHOTS.mkdir(parents=True, exist_ok=True)
        path = SHOTS / f"{name}.png"
        self.page.screenshot(path=path)
        return path
