"""Who is blamed, and in which words, for made-up ends of ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddp_lessons.placement import place
from ddp_lessons.report import explain, names, on_a_full_disk
from ddp_lessons.run import Failure, Rank, Run

ECHO = "[../third_party/gloo/pair.cc:525] Connection closed by peer [127.0.0.1]:40123"


def a_rank(number: int, failure: Failure | None = None, **facts) -> Rank:
    usual = {"exitcode": 1 if failure else 0, "finished": not failure, "started": 0.1}
    usual |= {"ended": 5.0, "called": 0.2, "joined": 0.3, "stdout": "", "stderr": ""}
    return Rank(
        rank=number, device="cpu", pid=9, parent=1, records=(), failure=failure, **usual | facts
    )


def raised(message: str, line: int = 7, kind: str = "ValueError", chain=()) -> Failure:
    frames = (("some.py", line, "<module>", "step()"),)
    return Failure(kind, message, "some.py", line, frames, chain)


def blamed(*ranks: Rank, stopped=(), timeout=60) -> tuple[int | None, list[str]]:
    placed = place(len(ranks), gpus=0, nccl=False)
    run = Run("some.py", len(ranks), placed, timeout + 0.5, ranks, Path("log"))
    rank, text = explain(run, set(stopped), timeout)
    return rank, text.splitlines()


def running(number: int, **facts) -> Rank:
    return a_rank(number, exitcode=None, finished=False, ended=None, **facts)


def dead(number: int, exitcode: int | None, **facts) -> Rank:
    return a_rank(number, exitcode=exitcode, finished=False, ended=None, **facts)


def test_an_exception_comes_before_the_echoes_that_were_earlier():
    rank, lines = blamed(
        a_rank(0, raised(ECHO, kind="RuntimeError"), ended=1.0), a_rank(1, raised("bad"), ended=2.0)
    )
    assert rank == 1
    assert lines == [
        "some.py: rank 1 failed first, line 7: ValueError: bad",
        "  some.py, line 7, in <module>",
        "    step()",
        "  The run ended there, for the other rank too.",
    ]


def test_of_two_different_exceptions_the_earlier_one_is_named():
    one, other = raised("late", line=3), raised("early", line=9)
    assert blamed(a_rank(0, one, ended=2.0), a_rank(1, other, ended=1.0))[0] == 1


def test_ranks_that_failed_alike_are_named_together_in_any_order_of_time():
    for times in ((1.0, 2.0, 3.0), (3.0, 2.0, 1.0)):
        rank, lines = blamed(
            a_rank(0, raised("no 0"), ended=times[0]),
            a_rank(1, raised(ECHO, kind="RuntimeError"), ended=times[1]),
            a_rank(2, raised("no 2"), ended=times[2]),
        )
        assert rank == 0
        assert lines[0] == "some.py: ranks 0 and 2 failed first, line 7: ValueError: no 0"
        assert lines[-1] == "  The run ended there, for the other rank too."


def test_an_exception_about_a_lost_peer_is_known_by_what_led_to_it():
    wrapped = raised("weights", kind="KeyError", chain=(f"RuntimeError: {ECHO}",))
    rank, lines = blamed(a_rank(0, wrapped), dead(1, -9))
    assert rank == 1
    assert lines[0] == (
        "some.py: rank 1 was killed by SIGKILL (signal 9): "
        "often the computer had no memory (RAM) left."
    )


def test_a_known_exit_code_comes_before_an_unknown_one():
    assert blamed(dead(0, None), dead(1, 3))[0] == 1


@pytest.mark.parametrize(
    ("rank", "said"),
    [
        (dead(0, 3), "rank 0 left early with exit code 3, before the end of the script."),
        (dead(0, -99), "rank 0 was killed by an unknown signal (signal 99)."),
        (dead(0, -7), "rank 0 was killed by SIGBUS (signal 7): often /dev/shm is full."),
        (
            dead(0, None, started=None),
            "rank 0 ended before the script began; the files in run.log say more.",
        ),
        (
            a_rank(0, Failure("exit", "3", "some.py", 4), exitcode=3),
            "rank 0 left early with exit code 3, line 4.",
        ),
        (
            a_rank(0, Failure("exit", "no data\nat all", "some.py", 4), exitcode=1),
            'rank 0 left early, line 4, with the message "no data".',
        ),
        (a_rank(0, raised("first\nsecond")), "rank 0 failed, line 7: ValueError: first"),
        (a_rank(0, raised("")), "rank 0 failed, line 7: ValueError"),
        (
            a_rank(0, raised("[enforce fail at /a/gloo/device.cc:84] ifa != nullptr. No utun99")),
            "rank 0 failed, line 7: ValueError: No utun99",
        ),
        (a_rank(0, raised("[0] is not 1")), "rank 0 failed, line 7: ValueError: [0] is not 1"),
    ],
)
def test_the_first_line_says_what_happened(rank, said):
    assert blamed(rank)[1][0] == f"some.py: {said}"


def test_of_a_deep_recursion_and_of_an_endless_message_only_the_ends_are_told():
    frames = tuple(("some.py", line, "f", "f()") for line in range(1, 1001))
    failure = Failure("RecursionError", "too deep " * 1000, "some.py", 1000, frames)
    lines = blamed(a_rank(0, failure))[1]
    assert len(lines) == 1 + 6 * 2 + 1
    assert lines[7] == "  … 994 more calls …"
    assert len(lines[0]) < 600 and lines[0].endswith("…")


def test_a_rank_that_came_to_its_end_is_blamed_only_if_another_needed_it():
    rank, lines = blamed(a_rank(0, raised(ECHO, kind="RuntimeError")), a_rank(1), a_rank(2))
    assert rank == 1
    assert lines[0] == (
        "some.py: ranks 1 and 2 came to the end of the script while other ranks still needed them."
    )


def test_no_rank_is_blamed_for_a_lost_peer_while_the_lost_one_was_running():
    rank, lines = blamed(a_rank(0, raised(ECHO, kind="RuntimeError")), running(1), stopped=[1])
    assert rank is None
    assert lines[0] == "some.py: rank 0 lost its connection to another rank, line 7."
    assert "gloo" not in "\n".join(lines) and "127.0.0.1" not in "\n".join(lines)


def test_at_the_limit_ranks_of_which_nothing_is_known_are_said_to_be_running():
    rank, lines = blamed(running(0), running(1), a_rank(2), stopped=[0, 1], timeout=2.5)
    assert rank is None
    assert lines == [
        "some.py: after 2.5 s, ranks 0 and 1 were still running; "
        "rank 2 came to the end of the script.",
        "  No rank was seen to wait for another. If they were at work, give them a longer "
        "timeout=.",
    ]


def test_at_the_limit_a_rank_that_never_joined_is_told_from_one_that_did():
    outside, waiting = running(0, called=None, joined=None), running(1, joined=None, expected=2)
    rank, lines = blamed(outside, waiting, stopped=[0, 1])
    assert rank == 0
    assert lines == [
        "some.py: after 60 s, rank 0 was still running; rank 1 waits in init_process_group.",
        "  1 of 2 ranks have called it.",
        "  Rank 0 never called it.",
        "  init_process_group waits until as many ranks as WORLD_SIZE (or world_size=) says have "
        "called it.",
    ]


def test_at_the_limit_a_rank_that_ended_without_joining_is_the_one_that_was_missed():
    waiting = running(0, joined=None, expected=2)
    rank, lines = blamed(waiting, a_rank(1, called=None, joined=None), stopped=[0])
    assert rank == 1
    assert "  Rank 1 came to the end of the script, without joining the process group." in lines


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([3], "rank 3"),
        ({2, 0}, "ranks 0 and 2"),
        (range(3), "ranks 0, 1 and 2"),
        (range(64), "ranks 0, 1, 2 and 61 more"),
    ],
)
def test_ranks_are_listed_as_one_would_say_them(ranks, text):
    assert names(ranks) == text


def test_a_refused_connection_of_the_readers_own_is_no_lost_peer():
    own = raised("[Errno 111] Connection refused", kind="ConnectionRefusedError")
    rank, lines = blamed(a_rank(0, own), running(1), stopped=[1])
    assert rank == 0
    assert "ConnectionRefusedError: [Errno 111] Connection refused" in lines[0]


def test_at_the_limit_a_world_size_that_is_too_large_is_not_said_to_be_complete():
    ranks = [running(n, joined=None, expected=3) for n in (0, 1)]
    rank, lines = blamed(*ranks, stopped=[0, 1])
    assert rank is None
    assert lines[1] == "  2 of 3 ranks have called it."
    assert lines[2].startswith("  init_process_group waits until as many ranks as WORLD_SIZE")


def test_at_the_limit_an_address_that_nobody_serves_is_named():
    ranks = [running(n, joined=None, elsewhere="tcp://localhost:12355") for n in (0, 1)]
    _, lines = blamed(*ranks, stopped=[0, 1])
    assert any("tcp://localhost:12355" in line for line in lines)


def test_a_full_disk_comes_first_only_where_no_rank_could_say_why_it_ended():
    placed = place(1, gpus=0, nccl=False)

    def told(rank: Rank) -> list[str]:
        run = Run("some.py", 1, placed, 0.5, (rank,), Path("log"))
        return on_a_full_disk(explain(run, set(), 60)[1], run).splitlines()

    mute = told(dead(0, 1))
    assert mute[0].startswith("some.py: the disk that keeps the ranks' output is full. Free some ")
    assert mute[1] == "  rank 0 left early with exit code 1, before the end of the script."
    spoken = told(a_rank(0, raised("bad")))
    assert spoken[0] == "some.py: rank 0 failed, line 7: ValueError: bad"
    assert spoken[-1].startswith("  The disk that keeps the ranks' output is full.")
