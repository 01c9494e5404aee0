"""Fixtures of the resume tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from trainings import train


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """The folder of a run that nobody killed, one for each world size."""
    made: dict[int, Path] = {}

    def of(world_size: int) -> Path:
        if world_size not in made:
            made[world_size] = tmp_path_factory.mktemp(f"whole_{world_size}")
            train(made[world_size], world_size)
        return made[world_size]

    return of
