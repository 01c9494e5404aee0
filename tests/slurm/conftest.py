"""The cluster of the Slurm tests: started once, for all of them."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster import INSTALL, cluster, missing

REQUIRE = "DDP_LESSONS_REQUIRE"  # what may not be skipped, "slurm" for example


@pytest.fixture(scope="session")
def slurm() -> Iterator[None]:
    """sbatch leads to a cluster of two nodes. Skips where Slurm is not installed."""
    if absent := missing():
        told = f"no {', '.join(absent)} here. On Debian and Ubuntu: {INSTALL}"
        if "slurm" in os.environ.get(REQUIRE, "").split(","):
            pytest.fail(told)
        pytest.skip(told)
    with pytest.MonkeyPatch.context() as patch, cluster() as env:
        for name in [name for name in os.environ if name.startswith(("SLURM_", "SBATCH_"))]:
            patch.delenv(name)
        for name, value in env.items():
            patch.setenv(name, value)
        yield


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., Path]:
    """Write a script for the ranks and return its path; line numbers count from its first line."""

    def write(text: str, name: str = "script.py") -> Path:
        path = tmp_path / name
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
        return path

    return write


@pytest.fixture(autouse=True)
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the nodes share is one of the test's own."""
    monkeypatch.setenv("DDP_LESSONS_SHARED", str(tmp_path / "shared"))
    return tmp_path / "shared"
