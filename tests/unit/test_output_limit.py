"""How much a rank may write, counted over its files and its attempts."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ddp_lessons import output_limit


@pytest.fixture
def limit(tmp_path, monkeypatch):
    monkeypatch.setattr(output_limit, "MOST", 1)  # MB
    workers = SimpleNamespace(running=lambda: {0, 1, 2})
    found = output_limit.OutputLimit(tmp_path, workers)

    def write(rank: int, name: str, size: int, attempt: int = 0) -> None:
        here = tmp_path / f"attempt_{attempt}" / f"rank_{rank}"
        here.mkdir(parents=True, exist_ok=True)
        (here / name).write_bytes(bytes(size))

    found.write, found.workers = write, workers
    return found


def test_nothing_happens_up_to_the_limit(limit):
    assert limit.look() is None  # before any rank has a folder
    limit.write(1, "stdout", 1_000_000)
    assert limit.look() is None


def test_both_streams_the_records_and_earlier_attempts_count_together(limit):
    limit.write(1, "stdout", 300_000)
    limit.write(1, "stderr", 300_000)
    limit.write(1, "records.jsonl", 300_000)
    assert limit.look() is None
    limit.write(1, "stdout", 100_001, attempt=1)
    assert limit.look() == 0.0
    assert limit.report("some.py").startswith("some.py: rank 1 wrote more than 1 MB of output, so")


def test_other_files_of_a_rank_do_not_count(limit):
    limit.write(1, "calls.bin", 3_000_000)
    assert limit.look() is None


def test_a_rank_that_has_ended_is_left_alone(limit):
    limit.write(1, "stdout", 3_000_000)
    limit.workers.running = lambda: {0, 2}
    assert limit.look() is None


def test_several_ranks_are_named_together(limit):
    limit.write(0, "stdout", 3_000_000)
    limit.write(2, "stderr", 3_000_000)
    limit.look()
    assert limit.over == [0, 2]
    assert "ranks 0 and 2 each wrote more than 1 MB of output, so they were stopped." in (
        limit.report("some.py")
    )


def test_a_scripts_own_process_that_starts_its_ranks_counts_too(limit, tmp_path):
    (tmp_path / "starter").mkdir()
    (tmp_path / "starter" / "stdout").write_bytes(bytes(1_000_001))
    assert limit.look() == 0.0
    assert (limit.over, limit.passed) == ([], True)
    assert limit.report("some.py").startswith("some.py: the script's own process wrote more than")
