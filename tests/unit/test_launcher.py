"""The environment that ranks start from, and the import of torch."""

from __future__ import annotations

import os

from ddp_lessons import launcher
from ddp_lessons.launcher import rank_environment


def test_ranks_share_the_cores_unless_the_reader_says_otherwise(monkeypatch):
    monkeypatch.setattr(launcher, "cores", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    counts = [rank_environment(size, {})["OMP_NUM_THREADS"] for size in (1, 2, 3, 8, 64)]
    assert counts == ["8", "4", "2", "1", "1"]
    assert rank_environment(2, {"OMP_NUM_THREADS": "5"})["OMP_NUM_THREADS"] == "5"
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert rank_environment(2, {})["OMP_NUM_THREADS"] == "3"


def test_gloo_stays_on_the_loopback_unless_the_reader_says_otherwise(monkeypatch):
    monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    assert rank_environment(2, {})["GLOO_SOCKET_IFNAME"] in ("lo", "lo0")
    assert rank_environment(2, {"GLOO_SOCKET_IFNAME": "eth9"})["GLOO_SOCKET_IFNAME"] == "eth9"


def test_the_environment_of_a_launch_is_a_copy(monkeypatch):
    rank_environment(2, {"ONLY_FOR_RANKS": "1"})
    assert "ONLY_FOR_RANKS" not in os.environ


def test_an_import_of_torch_that_fails_is_left_for_the_caller_to_meet(monkeypatch):
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(launcher.importlib, "import_module", missing)
    launcher.import_torch()
