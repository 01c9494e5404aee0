"""What a run called and where it stood, as pictures, HTML and text: made-up ledgers and stacks."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tags import parsed

from ddp_lessons import agreement, ledger_file, report, views
from ddp_lessons.calls import Calls
from ddp_lessons.ledger_file import Fields
from ddp_lessons.meetings import meetings
from ddp_lessons.operations import CODES
from ddp_lessons.placement import place
from ddp_lessons.run import Failure, Frame, Rank, Run
from ddp_lessons.stall import standings
from ddp_lessons.text import ending
from ddp_lessons.views import html, theme
from ddp_lessons.views.call_axis import signs
from ddp_lessons.views.call_labels import LETTERS, Label, is_free, place_labels
from ddp_lessons.views.call_layout import OPEN, Bar, layout, spans
from ddp_lessons.views.call_words import calls_told
from ddp_lessons.views.ends import ends
from ddp_lessons.views.wait_words import circle
from ddp_lessons.views.waiting import at_odds, rows, stood

SCRIPT = Path("some.py").absolute()
NEVER = 0.0


def a_call(
    op: str,
    called: float,
    returned: float = NEVER,
    line: int = 7,
    *,
    waited: float = NEVER,
    done: float = NEVER,
    peer: int = -1,
    asynchronous: bool = False,
    group: Sequence[int] = (),
    anybody: bool = False,
    raised: bool = False,
) -> dict:
    return locals()


def a_ledger(rank: int, size: int, *made: dict) -> Calls:
    """These calls as the ledger writes them."""
    names, records, counts = ["", str(SCRIPT)], b"", {}
    for seq, call in enumerate(made):
        members = list(call["group"]) or list(range(size))
        group = json.dumps(["0" if len(members) == size else str(members), members])
        names += [group] * (group not in names)
        key = group, call["op"], call["peer"] if call["peer"] >= 0 else None
        if call["anybody"]:
            key = group, call["op"], "anybody"
        if call["peer"] < 0 and not call["anybody"]:
            key = group
        index = counts[key] = counts.get(key, -1) + 1
        flags = ledger_file.ASYNC * call["asynchronous"] | ledger_file.ANYBODY * call["anybody"]
        fields = Fields(
            **{name: call[name] for name in ("called", "returned", "done", "line", "peer")},
            waiting=call["waited"],
            wait_line=call["line"] + 1,
            seq=seq,
            index=index,
            bytes=16,
            tag=0,
            group=names.index(group),
            file=1,
            wait_file=1,
            detail=0,
            op=CODES[call["op"]],
            reduce_op=0,
            dtype=1,
            dimensions=1,
            flags=flags,
            state=ledger_file.RAISED
            if call["raised"]
            else ledger_file.CLOSED
            if call["returned"]
            else ledger_file.OPEN,
        )
        records += ledger_file.RECORD.pack(*fields, 4, 0, 0, 0, 0, 0)
    return Calls(rank, records, tuple(names), True, str(SCRIPT), "some.py")


def a_rank(number: int, size: int, *made: dict, **facts) -> Rank:
    usual = {"exitcode": 0, "finished": True, "started": 0.1, "called": 0.2, "joined": 0.3}
    usual |= {"pid": 4000 + number, "parent": 1, "stdout": "", "stderr": "", "records": ()}
    usual |= {"ended": None, "device": "cpu", "calls": a_ledger(number, size, *made)}
    return Rank(rank=number, **usual | facts)


def stopped(number: int, size: int, *made: dict, line: int = 0, inside: str = "") -> Rank:
    stack = [Frame("some.py", line, "<module>", f"source_of_{line}()", True)] if line else []
    stack += [Frame("distributed.py", 1, inside, "", False)] if inside else []
    return a_rank(number, size, *made, exitcode=None, finished=False, stack=tuple(stack))


def a_run(*ranks: Rank, limit: float = 3) -> Run:
    placed = place(len(ranks), gpus=0, nccl=False)
    source = "\n".join(f"source_of_{number}()" for number in range(1, 20))
    run = Run("some.py", len(ranks), placed, 0.5, ranks, Path("log"), source)
    found = agreement.book(rank.calls for rank in run).disagreements()
    run = replace(run, mismatches=tuple(found))
    if run.ok:
        return run
    limited = {rank.rank for rank in run if rank.exitcode is None}
    return replace(run, report=report.explain(run, limited, limit)[1])


def in_barrier(number: int, size: int, called: float = 1.0, line: int = 7) -> Rank:
    return stopped(number, size, a_call("barrier", called, line=line), line=line)


SLEEPS = a_run(in_barrier(0, 3), stopped(1, 3, line=9), in_barrier(2, 3, 1.5))
MET = a_run(
    a_rank(0, 2, a_call("all_reduce", 1.0, 3.1), a_call("barrier", 4.0, 5.0, 8)),
    a_rank(1, 2, a_call("all_reduce", 3.0, 3.2), a_call("barrier", 4.5, 5.0, 8)),
)
AT_ODDS = a_run(
    stopped(0, 2, a_call("barrier", 1.0, line=11), line=11),
    stopped(1, 2, a_call("all_reduce", 1.5, line=14), line=14),
)
CIRCLE = a_run(
    *(
        stopped(rank, 3, a_call("recv", 1.0, peer=(rank - 1) % 3, line=6), line=6)
        for rank in range(3)
    )
)
EVALUATES = a_run(
    stopped(0, 2, line=9, inside="_sync_buffers"), stopped(1, 2, a_call("barrier", 1.0), line=7)
)
RAISED = a_run(
    a_rank(
        *(0, 2, a_call("all_reduce", 1.0, 1.1)),
        exitcode=1,
        finished=False,
        ended=2.0,
        failure=Failure("ValueError", "so not", "some.py", 8),
    ),
    stopped(1, 2, a_call("all_reduce", 1.0, 1.1), a_call("barrier", 1.2), line=7),
)
GONE = Failure("RuntimeError", "Connection closed by peer [127.0.0.1]:1", "some.py", 8)


def lost(number: int, size: int, *made: dict, at: float) -> Rank:
    """A rank that waited in `made` until, at `at`, it noticed that its peer had gone."""
    gone = replace(GONE, time=at)
    facts = {"exitcode": 1, "finished": False, "ended": at + 0.5, "failure": gone}
    return a_rank(number, size, *made, **facts)


def who_lost(number: int, size: int, left: float = 3.0, line: int = 8) -> Rank:
    call = a_call("barrier", 1.2 + number / 10, left, line, raised=True)
    return lost(number, size, a_call("all_reduce", 1.0, 1.1), call, at=left + 0.1)


def left_alone(**facts) -> Run:
    """Three ranks wait in barrier; rank 1 is not with them."""
    first = a_rank(1, 4, a_call("all_reduce", 1.0, 1.1), **facts)
    others = [who_lost(number, 4, 3.0 + number / 10) for number in (0, 2, 3)]
    return a_run(others[0], first, *others[1:])


WRONG = Failure("ValueError", "so not", "some.py", 9)
FAILS = left_alone(exitcode=1, finished=False, ended=9.0, failure=replace(WRONG, time=1.5))
CLEANS = left_alone(exitcode=1, finished=False, ended=9.0, failure=WRONG)
KILLED = left_alone(exitcode=-9, finished=False)
ENDS = left_alone(ended=9.0)
EXITS = left_alone(
    exitcode=3, finished=False, ended=9.0, failure=Failure("exit", "3", "some.py", 9, time=1.5)
)
PICTURES = {
    "calls": lambda: views.calls(MET),
    "calls of a hang": lambda: views.calls(SLEEPS),
    "calls that do not fit": lambda: views.calls(AT_ODDS),
    "calls up to a failure": lambda: views.calls(RAISED),
    "calls until a rank failed": lambda: views.calls(FAILS),
    "calls until a rank was killed": lambda: views.calls(KILLED),
    "waits": lambda: views.waits(SLEEPS),
    "waits for one that failed": lambda: views.waits(FAILS),
    "waits for one that came to the end": lambda: views.waits(ENDS),
    "waits in a circle": lambda: views.waits(CIRCLE),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_of_a_failure_is_the_same_for_the_same_facts_and_leaves_ink_to_the_theme(name):
    drawing = PICTURES[name]().svg
    assert drawing == PICTURES[name]().svg
    shapes = drawing.partition("</style>")[2]
    assert "var(--ink)" in shapes
    for colour in theme.DARK:
        assert colour not in shapes


@pytest.mark.parametrize("name", PICTURES)
def test_the_sentence_of_such_a_picture_does_not_change_with_the_times(name):
    sentence = PICTURES[name]().sentence
    assert sentence.endswith(".")
    assert "ms" not in sentence.split() and "4000" not in sentence


# Which calls met


def test_calls_meet_by_their_order_in_the_group_and_nobody_is_missing():
    met = meetings(MET)
    assert [[call.op for call in one.calls] for one in met] == [["all_reduce"] * 2, ["barrier"] * 2]
    assert [(one.last, one.missing) for one in met] == [(3.0, ()), (4.5, ())]


def test_calls_of_two_groups_meet_apart():
    run = a_run(
        a_rank(0, 3, a_call("all_reduce", 1.0, 2.0, group=[0, 2]), a_call("barrier", 3.0, 4.0)),
        a_rank(1, 3, a_call("barrier", 3.0, 4.0)),
        a_rank(2, 3, a_call("all_reduce", 1.0, 2.0, group=[0, 2]), a_call("barrier", 3.0, 4.0)),
    )
    assert [[call.rank for call in one.calls] for one in meetings(run)] == [[0, 2], [0, 1, 2]]


def test_a_send_meets_the_recv_of_its_receiver_also_one_from_any_rank():
    any_rank = {"anybody": True}
    run = a_run(
        a_rank(
            0,
            3,
            a_call("recv", 1.0, 2.0, peer=1, **any_rank),
            a_call("recv", 3.0, 4.0, peer=2, **any_rank),
            a_call("recv", 5.0, 6.0, peer=1),
        ),
        a_rank(1, 3, a_call("send", 1.5, 2.0, peer=0), a_call("send", 5.5, 6.0, peer=0)),
        a_rank(2, 3, a_call("send", 3.5, 4.0, peer=0)),
    )
    met = [[(call.rank, call.called) for call in one.calls] for one in meetings(run)]
    assert met == [[(0, 1.0), (1, 1.5)], [(0, 3.0), (2, 3.5)], [(0, 5.0), (1, 5.5)]]


def test_whom_a_call_still_waits_for_is_missing_from_its_meeting():
    (one,) = meetings(SLEEPS)
    assert one.missing == (1,)


# The lanes of calls


def bars(run: Run, rank: int) -> list[Bar]:
    return layout(run).lanes[rank].bars


def test_a_bar_waits_until_the_last_rank_has_called():
    first, second = bars(MET, 0)[0], bars(MET, 1)[0]
    assert (first.start, first.met, first.end) == pytest.approx((0, 2.0, 2.1))
    assert second.start == second.met == 2.0
    waiting, working = spans([first], 0.01, 4.0, merge=False)
    assert waiting[0] == pytest.approx((0, 2.0)) and working[0] == pytest.approx((2.0, 0.1))


def test_a_call_that_never_returned_waits_to_the_end_of_the_picture():
    made = layout(SLEEPS)
    (bar,) = made.lanes[2].bars
    assert bar.open and bar.end == made.width > made.known
    assert spans([bar], 0.001, made.width, merge=False) == ([(0.5, made.width - 0.5)], [])
    assert bar.label == "barrier, line 7: never returned"


def test_a_call_to_which_all_came_and_that_never_returned_is_not_drawn_as_going_on():
    made = layout(AT_ODDS)
    for lane in made.lanes:
        waiting, working = spans(lane.bars, 0.001, made.width, merge=False)
        assert len(waiting) == 1 and not working


def test_a_very_short_call_is_drawn_long_enough_to_be_seen():
    run = a_run(a_rank(0, 1, a_call("barrier", 1.0, 1.0001), a_call("barrier", 9.0, 9.0001)))
    waiting, working = spans(bars(run, 0), 0.05, 8.0001, merge=False)
    assert [length for _, length in waiting + working] == [0.05, 0.05]
    assert max(start + length for start, length in working) <= 8.0001


def test_very_many_calls_are_drawn_as_few_bars():
    made = [a_call("all_reduce", 1 + n / 1000, 1 + n / 1000 + 0.0004) for n in range(3000)]
    run = a_run(a_rank(0, 1, *made))
    waiting, working = spans(bars(run, 0), 0.02, 3.0, merge=True)
    assert len(waiting + working) == 1
    picture = views.calls(run)
    assert len(picture.svg) < 100_000
    assert picture.sentence.endswith(
        "calls: 3000 all_reduce. Labels are left out where there is no room."
    )


def test_an_asynchronous_call_and_the_wait_for_it_are_two_bars_with_its_flight_between():
    call = a_call("all_reduce", 1.0, 1.1, 5, waited=2.0, done=3.0, asynchronous=True)
    late = a_call("all_reduce", 2.5, 2.6, 5, waited=2.7, done=3.0, asynchronous=True)
    lane = layout(a_run(a_rank(0, 2, call), a_rank(1, 2, late))).lanes[0]
    issue, wait = lane.bars
    assert (issue.label, wait.label) == ("async all_reduce, line 5", "wait, line 6")
    assert lane.flights[0] == pytest.approx((0.1, 1.0, 0))
    assert (wait.start, wait.met, wait.end) == pytest.approx((1.0, 1.5, 2.0))


def test_asynchronous_calls_that_are_under_way_together_stand_above_each_other():
    call = {"asynchronous": True, "done": 4.0}
    one = a_call("all_reduce", 1.0, 1.1, waited=3.0, **call)
    two = a_call("all_reduce", 1.2, 1.3, waited=3.5, **call)
    after = a_call("barrier", 5.0, 6.0)
    rank = layout(a_run(a_rank(0, 1, one, two, after))).lanes[0]
    assert [bar.row for bar in rank.bars] == [0, 0, 1, 1, 0]


def test_sends_and_recvs_name_the_other_side_and_sub_groups_their_members():
    run = a_run(
        a_rank(0, 3, a_call("send", 1.0, 2.0, peer=1), a_call("barrier", 3.0, 4.0, group=[0, 2])),
        a_rank(1, 3, a_call("recv", 1.0, 2.0, peer=0)),
        a_rank(2, 3, a_call("barrier", 3.0, 4.0, group=[0, 2])),
    )
    assert [bar.label for bar in bars(run, 0)] == [
        "send to rank 1, line 7",
        "barrier (ranks 0, 2), line 7",
    ]
    assert bars(run, 0)[1].part and not bars(run, 0)[0].part


def test_labels_do_not_stand_on_each_other_and_what_went_wrong_gets_one_first():
    made = [a_call("all_reduce", 1 + n / 10, 1.05 + n / 10, line=n + 1) for n in range(10)]
    lane = layout(a_run(stopped(0, 2, *made, a_call("barrier", 2.0)), stopped(1, 2))).lanes[0]
    place_labels(lane, 1.5, 0.012)
    assert lane.labels[0].text == "barrier, line 7: never returned" and lane.labels[0].bold

    def extent(label: Label) -> tuple[float, float]:
        return label.left, label.left + 0.012 * len(label.text)

    assert 3 < len(lane.labels) < 11
    for index, one in enumerate(lane.labels):
        same = [extent(other) for other in lane.labels[index + 1 :] if other.level == one.level]
        assert is_free(same, *extent(one))


def test_of_a_run_that_failed_the_sentence_says_who_did_and_where_and_counts_nothing():
    assert calls_told(RAISED) == (
        "The calls of 2 ranks. Rank 0 failed first, line 8: ValueError: so not."
    )
    assert calls_told(KILLED).startswith("The calls of 4 ranks. Rank 1 was killed by SIGKILL")


@pytest.mark.parametrize("run", [FAILS, CLEANS, KILLED, ENDS, EXITS])
def test_who_failed_first_ends_first_in_the_picture_whatever_its_clean_up_takes(run):
    lanes = layout(run).lanes
    assert [lane.end.kind for lane in lanes if lane.rank.rank != 1] == ["lost"] * 3
    assert lanes[1].ended < min(lane.ended for lane in lanes if lane is not lanes[1])
    assert lanes[1].ended >= max(bar.end for bar in lanes[1].bars)


def test_an_exception_is_drawn_where_it_was_raised_and_else_when_the_others_noticed_at_the_latest():
    assert ends(FAILS)[1].time == 1.5
    assert ends(CLEANS)[1].time == ends(KILLED)[1].time == 3.0


def test_a_rank_is_not_drawn_to_end_before_its_last_call_did():
    run = a_run(
        a_rank(0, 2, a_call("all_reduce", 1.0, 4.0), exitcode=-9, finished=False), who_lost(1, 2)
    )
    assert ends(run)[0].time == 4.0


def test_the_words_of_an_end_stand_right_of_its_mark_inside_the_picture():
    facts = {"exitcode": 1, "finished": False, "ended": 2.0}
    failure = Failure("AVeryLongNameOfAnError", "no", "some.py", 11, time=2.0)
    run = a_run(a_rank(0, 1, a_call("barrier", 1.0, 1.9), failure=failure, **facts))
    made = layout(run)
    words = made.lanes[0].end.words
    assert words == "AVeryLongNameOfAnError, line 11"
    assert made.lanes[0].ended + len(words) * made.width / LETTERS < made.width


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (FAILS, "ValueError, line 9"),
        (KILLED, "killed by SIGKILL"),
        (ENDS, "came to the end"),
        (EXITS, "sys.exit, line 9"),
    ],
)
def test_each_end_is_named(run, words):
    found = ends(run)
    assert found[1].words == words
    assert [found[rank].words for rank in (0, 2, 3)] == ["lost its peer"] * 3


def test_a_call_that_raised_for_its_peer_was_lost_is_no_failure_of_its_own():
    assert [bar.label for bar in bars(FAILS, 0)] == ["all_reduce, line 7", "barrier, line 8"]
    own = Failure("ValueError", "bad shape", "some.py", 7, time=1.6)
    facts = {"exitcode": 1, "finished": False, "failure": own}
    run = a_run(a_rank(0, 1, a_call("all_reduce", 1.0, 1.5, raised=True), **facts))
    assert bars(run, 0)[0].label == "all_reduce, line 7: raised"


def test_a_rank_that_was_killed_in_a_call_is_not_drawn_as_waiting_until_the_run_was_stopped():
    killed = a_rank(1, 2, a_call("recv", 1.0, peer=0), exitcode=-9, finished=False)
    made = layout(a_run(who_lost(0, 2), killed))
    (bar,) = made.lanes[1].bars
    assert not bar.open and bar.end == made.lanes[1].ended
    assert made.width < made.known / (1 - OPEN)


def test_a_run_in_which_all_came_to_the_end_or_were_stopped_has_no_marks_but_for_those_who_left():
    assert not ends(MET) and not ends(SLEEPS)
    run = a_run(in_barrier(0, 2), a_rank(1, 2, ended=1.5))
    assert [(rank, end.kind) for rank, end in ends(run).items()] == [(1, "left")]


@pytest.mark.parametrize(
    ("run", "sign"),
    [
        (FAILS, "✖"),
        (FAILS, "○"),
        (ENDS, "■"),
        (AT_ODDS, "≠"),
        (SLEEPS, "//"),
    ],
)
def test_each_sign_is_explained_where_it_is_used_and_only_there(run, sign):
    def key(run: Run) -> str:
        made = layout(run)
        return " ".join(signs(run, made, "ms", any(lane.open for lane in made.lanes)))

    assert sign in key(run) and sign not in key(MET)


def test_a_failure_before_the_first_call_is_not_left_of_the_picture():
    facts = {"exitcode": 1, "finished": False, "failure": replace(WRONG, time=0.5)}
    made = layout(a_run(a_rank(0, 2, **facts), who_lost(1, 2)))
    assert made.lanes[0].ended == 0.0
    assert signs(MET, made, "ms", False)[0] == "ms since the first rank ended"


def test_of_a_hang_the_sentence_counts_and_says_what_never_returned():
    assert calls_told(SLEEPS) == (
        "The calls of 3 ranks. Ranks 0 and 2: 1 barrier. Rank 1: none. "
        "Never returned: barrier, line 7, on ranks 0 and 2."
    )


def test_of_a_run_that_was_only_slow_the_sentence_counts_nothing():
    slow = a_run(in_barrier(0, 2), in_barrier(1, 2))
    assert calls_told(slow) == "The calls of 2 ranks until the run was stopped."


def test_calls_that_do_not_fit_together_are_named_and_marked():
    assert calls_told(AT_ODDS) == (
        "The calls of 2 ranks: rank 0 called barrier, line 11, where rank 1 called all_reduce, "
        "line 14."
    )
    assert bars(AT_ODDS, 1)[0].label.startswith("≠ all_reduce, line 14")


def test_without_a_call_there_is_no_picture_of_calls():
    with pytest.raises(ValueError, match="no rank of this run made a communication call"):
        views.calls(a_run(a_rank(0, 1)))
    with pytest.raises(ValueError) as caught:
        views.calls(a_run(a_rank(0, 1)))
    assert len(caught.value._render_traceback_()) == 1


@pytest.mark.parametrize("size", [1, 17, 64])
def test_calls_of_any_number_of_ranks_can_be_drawn(size):
    ranks = [a_rank(n, size, a_call("barrier", 1 + n / 100, 3.0)) for n in range(size)]
    assert views.calls(a_run(*ranks)).png


# Who waits for whom


def test_each_waiting_rank_points_at_the_ranks_that_have_not_called():
    made = rows(at_odds(SLEEPS, standings(SLEEPS)))
    assert [row.on for row in made] == [(1,), (), (1,)]
    assert [row.look for row in made] == ["hatched", "full", "hatched"]
    assert views.waits(SLEEPS).sentence == (
        "Ranks 0 and 2 wait in barrier, line 7, for rank 1; rank 1 is at line 9."
    )


def test_a_circle_is_found_and_said():
    assert circle(standings(CIRCLE)) == [0, 2, 1]
    assert views.waits(CIRCLE).sentence.endswith(
        "They wait in a circle: 0 for 2, 2 for 1, 1 for 0."
    )
    assert circle(standings(SLEEPS)) == []


def test_a_circle_behind_a_rank_that_is_not_in_it_is_found():
    run = a_run(
        stopped(0, 3, a_call("recv", 1.0, peer=1), line=7),
        stopped(1, 3, a_call("recv", 1.0, peer=2), line=7),
        stopped(2, 3, a_call("recv", 1.0, peer=1), line=7),
    )
    assert circle(standings(run)) == [1, 2]


def test_calls_that_do_not_fit_together_wait_for_each_other():
    assert views.waits(AT_ODDS).sentence == (
        "Rank 0 waits in barrier, line 11, for rank 1; rank 1 waits in all_reduce, line 14, for "
        "rank 0. They wait in a circle: 0 for 1, 1 for 0."
    )


def test_a_rank_inside_ddp_needs_those_that_are_not():
    found = standings(EVALUATES)
    assert [row.needs for row in rows(found)] == [(1,), ()]
    assert "DDP on rank 0 cannot go on without rank 1." in views.waits(EVALUATES).sentence


def test_a_rank_inside_another_call_of_torch_is_not_said_to_be_in_ddp():
    inside = (
        Frame("some.py", 9, "<module>", "source_of_9()", True),
        Frame("distributed_c10d.py", 1, "all_gather", "", False),
    )
    run = a_run(replace(stopped(0, 2), stack=inside), stopped(1, 2, line=7))
    assert "DDP" not in views.waits(run).sentence
    assert [row.needs for row in rows(stood(run))] == [(), ()]


def test_from_five_ranks_on_those_that_stand_alike_share_a_row():
    def sleepers(size: int) -> Run:
        return a_run(
            *(in_barrier(n, size) for n in range(size - 1)), stopped(size - 1, size, line=9)
        )

    assert [row.ranks for row in rows(stood(sleepers(4)))] == [(0,), (1,), (2,), (3,)]
    assert [row.ranks for row in rows(stood(sleepers(5)))] == [(0, 1, 2, 3), (4,)]


def test_many_ranks_that_stand_alike_share_a_row():
    ranks = [in_barrier(n, 20) if n != 11 else stopped(11, 20, line=9) for n in range(20)]
    run = a_run(*ranks)
    made = rows(standings(run))
    assert [(len(row.ranks), row.on) for row in made] == [(19, (1,)), (1, ())]
    assert views.waits(run).png


def test_many_ranks_that_stand_apart_leave_the_last_row_to_the_rest():
    size = 20
    run = a_run(
        *(stopped(n, size, a_call("recv", 1.0, peer=(n - 1) % size), line=6) for n in range(size))
    )
    made = rows(standings(run))
    assert [len(row.ranks) for row in made] == [1] * 7 + [13]
    assert made[7].mixed and made[0].on == (7,) and made[7].on == (6,)
    assert "20 of them wait in a circle." in views.waits(run).sentence


def test_without_a_rank_that_was_stopped_nobody_waits():
    with pytest.raises(ValueError, match="no rank of this run was waiting for another") as caught:
        views.waits(MET)
    assert len(caught.value._render_traceback_()) == 1  # all that a notebook shows


def test_where_a_rank_failed_and_none_waited_it_is_said_how():
    facts = {"exitcode": 1, "finished": False, "failure": WRONG}
    with pytest.raises(ValueError, match="rank 1 failed, line 9: ValueError, and no rank"):
        views.waits(a_run(a_rank(0, 2), a_rank(1, 2, **facts)))


@pytest.mark.parametrize(
    ("run", "how"),
    [
        (FAILS, "rank 1 failed, line 9: ValueError"),
        (KILLED, "rank 1 was killed by SIGKILL"),
        (ENDS, "rank 1 came to the end of the script"),
        (EXITS, "rank 1 left by sys.exit, line 9"),
    ],
)
def test_ranks_that_lost_their_peer_waited_for_it_and_it_is_said_how_it_ended(run, how):
    made = rows(stood(run))
    assert [row.on for row in made] == [(1,), (), (1,), (1,)]
    assert [row.look for row in made] == ["hatched", "dashed", "hatched", "hatched"]
    assert views.waits(run).sentence == (
        f"Ranks 0, 2 and 3 waited in barrier, line 8, for rank 1; {how}."
    )


def test_a_rank_that_has_ended_says_how():
    made = views.waits(RAISED)
    assert made.sentence.startswith("Rank 0 failed, line 8: ValueError; rank 1 waited in barrier")
    assert stood(RAISED)[0].source == "source_of_8()"
    ends = {-9: "killed by SIGKILL", 3: "exit code 3", None: "stopped"}
    for code, told in ends.items():
        assert ending(a_rank(0, 1, exitcode=code, finished=False)) == told


# The run as text and HTML


FAILED = {"sleeps": SLEEPS, "circle": CIRCLE, "raised": RAISED, "at odds": AT_ODDS}


@pytest.mark.parametrize("name", FAILED)
def test_a_failed_runs_text_begins_with_its_report(name):
    run = FAILED[name]
    head, *rest = repr(run).splitlines()
    assert head == f"some.py on {len(run)} ranks: failed"
    assert rest[: len(run.report.splitlines())] == run.report.splitlines()


@pytest.mark.parametrize("name", FAILED)
def test_a_failed_runs_html_says_all_that_its_text_says(name):
    text = parsed(html.run(FAILED[name])).text
    for word in re.findall(r"[\w.()=]+", repr(FAILED[name])):
        assert word in text, word


def test_the_first_line_of_a_report_is_strong_and_all_of_it_is_escaped():
    wild = replace(SLEEPS, report="some.py: <b>no\n  <script>")
    tags = parsed(html.run(wild))
    assert "strong" in [tag for tag, _ in tags.found]
    assert not {"b", "script"} & {tag for tag, _ in tags.found}
    assert "<b>no" in tags.text and "<script>" in tags.text


def test_a_hangs_html_has_a_row_for_where_each_rank_stood_and_says_its_lines_once():
    made = html.run(SLEEPS)
    assert "Where each rank stood" in made
    assert made.count("source_of_9()") == 1
    assert made.count("source_of_7()") == 2  # ranks 0 and 2
    assert "some.py, line 9" not in made


@pytest.mark.parametrize("name", ["raised", "at odds"])
def test_only_a_hang_has_a_table_of_where_each_rank_stood(name):
    assert "Where each rank stood" not in html.run(FAILED[name])


def test_the_rank_that_stands_alone_is_not_hidden_among_many():
    ranks = [in_barrier(n, 20) if n != 11 else stopped(11, 20, line=9) for n in range(20)]
    text = html.run(a_run(*ranks))
    assert "source_of_9()" in text
    assert "0, 1, 2 and 16 more" in text


def test_a_run_that_went_well_shows_no_report():
    assert 'ddp-first"' not in html.run(MET)
