"""How the tests run: notebooks compared by their text, slow tests on demand.

Nothing here needs nbval: `pytest tests` works without it.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile

import pytest

# The rich forms of an output hold seconds, devices and drawings; the text beside them says the same
# facts and is compared. PNG and JPEG are left out by nbval itself.
NOT_COMPARED = ("text/html", "image/svg+xml", "stderr")
CELL_TIMEOUT = 120  # seconds
NBVAL_TIMEOUT = 2000  # nbval's own default

SCRATCH = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the tests marked slow, too")


def pytest_configure(config: pytest.Config) -> None:
    options = config.option
    if getattr(options, "nbval", False) or getattr(options, "nbval_lax", False):
        # A user's own kernelspec may bear the name python3, so a name will not do.
        options.nbval_current_env = options.nbval_kernel_name is None
        if options.nbval_cell_timeout == NBVAL_TIMEOUT:
            options.nbval_cell_timeout = CELL_TIMEOUT
        if options.color == "auto" and not sys.stdout.isatty():
            options.color = "no"  # nbval colours its reports even in a log file
    # Kernels inherit it: the user's IPython start-up files and history stay out of the tests.
    config.stash[SCRATCH] = os.environ["IPYTHONDIR"] = tempfile.mkdtemp()


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(config.stash.get(SCRATCH, ""), ignore_errors=True)


def pytest_collectstart(collector: pytest.Collector) -> None:
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += NOT_COMPARED


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.slow or "slow" in config.option.markexpr:
        return
    slow = [item for item in items if "slow" in item.keywords]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]


def pytest_runtest_setup(item: pytest.Item) -> None:
    # nbval passes a cell that was never executed, since there is nothing to compare it with.
    cell = getattr(item, "cell", None)
    if cell is not None and cell.execution_count is None:
        pytest.fail(f"was never executed: build the notebook\n\n{cell.source}", pytrace=False)
