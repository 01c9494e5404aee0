"""How the ends of ranks are read that are no children of the launching process."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from ddp_lessons import own_ranks
from ddp_lessons.engines import Job
from ddp_lessons.engines.marked import Marked
from ddp_lessons.engines.python import Engine, own_environment
from ddp_lessons.engines.torchrun import reported

TERM, KILL = -signal.SIGTERM, -signal.SIGKILL


def a_job(folder: Path, **facts) -> Job:
    given = {"max_restarts": 0, "env": {}, "nnodes": 1, "world_size": 2, **facts}
    return Job(folder, port=1, visible=(None,), **given)


def note(here: Path, **event: object) -> None:
    """Write a milestone as the process would whose folder this is."""
    here.mkdir(parents=True, exist_ok=True)
    with open(here / "events.jsonl", "a") as file:
        file.write(json.dumps({"time": 0.0, **event}) + "\n")


class Dead(Marked):
    """Ranks of which none lives, and what their starter says of them."""

    def __init__(self, folder: Path, codes: dict[int, int | None]):
        super().__init__(a_job(folder, world_size=len(codes)))
        self._codes = codes
        self._running = set(codes)
        for rank in codes:
            self.write(rank, event="started", pid=0)

    def write(self, rank: int, **event: object) -> None:
        note(self._job.folder / f"attempt_0/rank_{rank}", **event)

    def is_alive(self, pid: int) -> bool:
        return False

    def reported_code(self, rank: int) -> int | None:
        return self._codes[rank]


def test_a_rank_that_its_starter_has_stopped_is_never_taken_for_the_one_that_died(tmp_path):
    ranks = Dead(tmp_path, {0: TERM, 1: 3})
    assert ranks.wait(0) == {1: 3}
    assert ranks.wait(0) == {}
    assert ranks.running() == {0}  # which counts as stopped


def test_an_end_marker_says_more_than_a_starter(tmp_path):
    ranks = Dead(tmp_path, {0: None, 1: KILL})
    ranks.write(0, event="ended", code=1)
    assert ranks.wait(0) == {0: 1, 1: KILL}


def test_a_rank_of_which_nobody_says_how_it_ended_has_no_exit_code(tmp_path):
    assert Dead(tmp_path, {0: None}).wait(0) == {0: None}


class Spawned(Engine):
    """Ranks of a script's own process; `alive` are the process ids that live."""

    def __init__(self, folder: Path, alive: set[int]):
        super().__init__(a_job(folder))
        self._running = {0, 1}
        self.alive = alive
        for place, pid in (("starter", 10), ("attempt_0/rank_0", 20), ("attempt_0/rank_1", 21)):
            note(folder / place, event="started", pid=pid)

    def is_alive(self, pid: int) -> bool:
        return pid in self.alive

    def starters_ended(self) -> bool:
        return False  # the guard above the script's process is still at work


def test_a_script_that_was_killed_has_ended_each_of_its_ranks_though_some_still_live(tmp_path):
    ranks = Spawned(tmp_path, alive={20})
    assert ranks.wait(0) == {0: None, 1: None}
    assert ranks.running() == set()  # so that none counts as stopped at the end of the run


def test_a_rank_that_was_interrupted_with_its_script_keeps_the_code_in_its_end_marker(tmp_path):
    ranks = Spawned(tmp_path, alive={20})
    note(tmp_path / "attempt_0/rank_1", event="ended", code=0)
    assert ranks.wait(0) == {0: None, 1: 0}


def test_ranks_that_had_all_ended_well_keep_their_codes_when_their_script_is_killed(tmp_path):
    ranks = Spawned(tmp_path, alive={10})
    for rank in (0, 1):
        note(tmp_path / f"attempt_0/rank_{rank}", event="ended", code=0)
    assert ranks.wait(0) == {0: 0}  # the script lives, and so does the run
    ranks.alive.clear()
    assert ranks.wait(0) == {1: 0}


def test_a_script_that_lives_or_has_told_its_end_ends_no_rank_by_that(tmp_path):
    alive = Spawned(tmp_path / "alive", alive={10, 20})
    assert alive.wait(0) == {}
    told = Spawned(tmp_path / "told", alive={20})
    note(tmp_path / "told/starter", event="ended", code=1)
    assert told.wait(0) == {}


def test_torchruns_report_is_read_by_global_rank():
    text = "  rank      : 1 (local_rank: 0)\n  exitcode  : -9 (pid: 7)\n"
    assert reported(text, 1) == -9
    assert reported(text, 0) is None


class Made:
    """A process of multiprocessing, before its start."""

    def __init__(self, target: object, *args: object, **kwargs: object):
        self._target, self._args, self._kwargs = target, args, kwargs


def demo() -> None: ...


@pytest.mark.parametrize(
    ("process", "rank"),
    [
        (Made(demo, 3, "x"), 3),
        (Made(demo, rank=2), 2),
        (Made(demo), None),
        (Made(demo, True), None),
        (Made(demo, -1), None),
        (Made(demo, "3"), None),
        (Made(None, 1), 1),
    ],
)
def test_a_process_is_the_rank_that_its_first_argument_says(process, rank):
    assert own_ranks.rank_of(process) == rank


def test_torchs_spawn_hands_the_rank_over_in_second_place():
    from torch.multiprocessing.spawn import _wrap

    assert own_ranks.rank_of(Made(_wrap, demo, 4, (), "file")) == 4


def test_a_worker_of_a_data_loader_is_no_rank_although_its_first_argument_is_a_number():
    from torch.utils.data._utils.worker import _worker_loop

    assert own_ranks.rank_of(Made(_worker_loop, 0, "data set")) is None


def test_the_script_keeps_what_the_caller_of_launch_gave_it(tmp_path, monkeypatch):
    monkeypatch.setenv("MASTER_PORT", "29500")
    env = {"MASTER_PORT": "29500", "MASTER_ADDR": "mine", "OMP_NUM_THREADS": "1"}
    assert own_environment(a_job(tmp_path, env=env)) == {
        "MASTER_ADDR": "mine",
        "OMP_NUM_THREADS": "1",
        "WORLD_SIZE": "2",
    }
