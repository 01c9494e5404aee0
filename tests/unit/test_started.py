"""Who started whom, from what ranks noted of the processes above them: made-up runs will do."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from ddp_lessons import views
from ddp_lessons.placement import place
from ddp_lessons.run import Failure, Process, Rank, Run, Starter
from ddp_lessons.text import summary
from ddp_lessons.views import html, theme

ME = Process(10, "python -m ipykernel")
SERVER = "python -c from multiprocessing.forkserver import main"
AGENT = "python -m ddp_lessons.bootstrap agent"
OWN = "python -m ddp_lessons.own_ranks"
OLD = "python -m torch.distributed.launch --nproc-per-node=2"


def a_rank(number: int, pid: int, *above: Process, **facts) -> Rank:
    return Rank(
        number, "cpu", pid, above[0].pid if above else 1, 0, "", "", (), True, above=above, **facts
    )


def a_run(*ranks: Rank, **facts) -> Run:
    placed = place(len(ranks), gpus=0, nccl=False)
    run = Run("spawn.py", len(ranks), placed, 0.5, ranks, Path("log"), owner=ME.pid)
    return replace(run, **facts)


def guarded(pid: int, command: str) -> tuple[Process, Process]:
    """A process and the guard above it, which bears its command."""
    return Process(pid, command), Process(pid - 1, command)


def pair(pid: int, *above: Process, first: int = 0, **facts) -> list[Rank]:
    return [a_rank(first + n, pid + n, *above, **facts) for n in range(2)]


SERVED = a_run(*pair(100, *guarded(20, SERVER), ME))
SPAWNED = a_run(*pair(100, *guarded(20, OWN), ME))
OLDER = a_run(*pair(100, Process(30, OLD), *guarded(20, OWN), ME))
TWO = a_run(*pair(100, *guarded(20, AGENT), ME), *pair(200, *guarded(40, AGENT), ME, first=2))
CLUSTER = a_run(
    *pair(100, Process(20, "python -m torch.distributed.run"), Process(5, "slurmstepd: [3.0]")),
    *pair(
        200,
        Process(40, "python -m torch.distributed.run"),
        Process(6, "slurmstepd: [3.0]"),
        first=2,
    ),
)


def restarted(*first: Rank) -> Run:
    again = pair(300, *guarded(20, AGENT), ME)
    return a_run(*again, attempt=1, earlier=(first,))


ECHO = Failure("RuntimeError", "Connection closed by peer", "a.py", 3)
LOST = replace(pair(100, *guarded(20, AGENT), ME)[0], failure=ECHO, exitcode=1, finished=False)
KILLED = replace(pair(100, *guarded(20, AGENT), ME)[1], exitcode=None, finished=False)
RESTARTED = restarted(LOST, KILLED)


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (SERVED, "launch() started the worker server, which started ranks 0 and 1."),
        (SPAWNED, "launch() started spawn.py, which started ranks 0 and 1."),
        (
            OLDER,
            "launch() started spawn.py, which started torch.distributed.launch, which started "
            "ranks 0 and 1.",
        ),
        (
            TWO,
            "launch() started 2 x torchrun: one for ranks 0 and 1; one for ranks 2 and 3.",
        ),
        (
            CLUSTER,
            "slurmstepd started torchrun, which started ranks 0 and 1; slurmstepd started "
            "torchrun, which started ranks 2 and 3.",
        ),
        (
            RESTARTED,
            "launch() started torchrun, which started ranks 0 and 1 (attempt 0, in which rank 1 "
            "died), then ranks 0 and 1 (attempt 1).",
        ),
        (a_run(a_rank(0, 100)), "rank 0."),  # where the system does not tell
    ],
)
def test_the_picture_says_who_started_whom(run, sentence):
    assert repr(views.started(run)) == sentence


def test_several_runs_stand_side_by_side_with_their_names():
    told = repr(views.started({"default": SERVED, "mp.spawn": SPAWNED}))
    assert told == f"default: {views.started(SERVED)} mp.spawn: {views.started(SPAWNED)}"


def test_the_rank_that_died_is_the_one_with_a_fault_of_its_own_not_the_one_that_lost_its_peer():
    own = Failure("ValueError", "no such file", "a.py", 3)
    raised = replace(KILLED, failure=own, exitcode=None)
    assert "in which rank 1 died" in repr(views.started(restarted(LOST, raised)))
    # torchrun had noted both: the one that it stopped says nothing.
    both = [replace(one, failure=None, exitcode=None, finished=False) for one in (LOST, KILLED)]
    assert "attempt 0)" in repr(views.started(restarted(*both)))
    noted = [replace(both[0], exitcode=-9), both[1]]
    assert "in which rank 0 died" in repr(views.started(restarted(*noted)))


def test_the_drawing_has_no_process_id_and_is_the_same_for_the_same_tree():
    other = a_run(
        *pair(7100, *guarded(7020, AGENT), ME), *pair(7200, *guarded(7040, AGENT), ME, first=2)
    )
    assert views.started(TWO).svg == views.started(other).svg
    drawn = views.started(RESTARTED).svg.partition("</style>")[2]
    assert not any(colour in drawn for colour in (theme.INK, theme.SOFT, theme.LINE))


def test_more_ranks_than_can_be_read_are_refused():
    many = a_run(*(a_rank(n, 100 + n, Process(20, AGENT), ME) for n in range(17)))
    with pytest.raises(ValueError, match="at most 16 ranks, and these are 17"):
        views.started(many)


def starter(**facts) -> Starter:
    made = Starter(20, "all ended\n", "a warning\n", (), True, None, (0, 1))
    return replace(made, **facts)


def test_a_run_with_a_process_of_its_own_is_ok_only_if_that_one_is_and_started_all_ranks():
    assert replace(SPAWNED, starter=starter()).ok
    assert not replace(SPAWNED, starter=starter(finished=False)).ok
    for came in ((), (0,), (0, 2), (0, 1, 2)):
        assert not replace(SPAWNED, starter=starter(came=came)).ok
    assert pickle.loads(pickle.dumps(replace(SPAWNED, starter=starter()))).ok


def test_what_that_process_printed_is_in_the_text_and_in_the_html():
    run = replace(SPAWNED, starter=starter())
    assert "script | all ended" in summary(run)
    assert "a warning" not in summary(run)
    for text in ("all ended", "a warning", "process wrote to stderr (1 lines)"):
        assert text in html.run(run)
