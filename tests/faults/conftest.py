"""Fixtures of the fault tests."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from ddp_lessons import launch


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A server that has answered once, for tests with a short limit."""
    path = tmp_path_factory.mktemp("warm") / "warm.py"
    path.write_text("print('warm')\n")
    launch(path, 1)


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., Path]:
    """Write a script for the ranks and return its path; line numbers count from its first line."""

    def write(text: str, name: str = "script.py") -> Path:
        path = tmp_path / name
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
        return path

    return write
