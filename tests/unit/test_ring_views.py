"""Messages, the pictures of them, and the player of a ring: made-up runs will do here."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path

import pytest

from ddp_lessons import views
from ddp_lessons.placement import place
from ddp_lessons.run import Call, Rank, Record, Run
from ddp_lessons.views import messages, player, ring_states, theme
from ddp_lessons.views.messages import Message


class Made:
    """A run that is put together call by call; each tick of its clock is a call's begin or end."""

    def __init__(self, size: int):
        self.calls: list[list[Call]] = [[] for _ in range(size)]
        self.records: list[list[Record]] = [[] for _ in range(size)]
        self.clock = 0.0

    def call(self, rank: int, op: str, peer: int, size: int, end: float) -> None:
        made = self.calls[rank]
        group = tuple(range(len(self.calls)))
        called, self.clock = self.clock, self.clock + 1
        made.append(
            Call(rank, len(made), op, group, 0, "x.py", 1, called, end, peer=peer, bytes=size)
        )

    def send(self, sender: int, receiver: int, size: int) -> None:
        """A send and its recv that block: nothing else happens on the two ranks meanwhile."""
        end = self.clock + 2
        self.call(receiver, "recv", sender, size, end)
        self.call(sender, "send", receiver, size, end)
        self.clock = end + 1

    def pass_on(self, size: int) -> None:
        """All ranks send to the right and receive from the left, at the same time."""
        ranks = len(self.calls)
        end = self.clock + 3 * ranks
        for rank in range(ranks):
            self.call(rank, "isend", (rank + 1) % ranks, size, end)
            self.call(rank, "irecv", (rank - 1) % ranks, size, end)
        self.clock = end + 1

    def record(self, rank: int, name: str, **values: object) -> None:
        self.records[rank].append(Record(rank, name, 0.0, 1, values))

    @property
    def run(self) -> Run:
        ranks = tuple(
            Rank(n, "cpu", 1, 1, 0, "", "", tuple(self.records[n]), True, calls=tuple(calls))
            for n, calls in enumerate(self.calls)
        )
        placed = place(len(ranks), gpus=0, nccl=False)
        return Run("some.py", len(ranks), placed, 0.5, ranks, Path("log"))


def star(ranks: int, size: int) -> Run:
    """Through rank 0: one after the other in, one after the other out."""
    made = Made(ranks)
    for other in range(1, ranks):
        made.send(other, 0, size)
    for other in range(1, ranks):
        made.send(0, other, size)
    return made.run


def ring(ranks: int, entries: int = 2) -> Run:
    """The first half of a ring, with a record of every step, as the script of lesson 05 makes it.
    Rank r holds 10**r everywhere."""
    made = Made(ranks)
    held = [[[10**rank] * entries for _ in range(ranks)] for rank in range(ranks)]
    for rank in range(ranks):
        made.record(rank, "start", chunks=[list(chunk) for chunk in held[rank]])
    for step in range(1, ranks):
        made.pass_on(8 * entries)
        sent = [held[rank][(rank - step) % ranks] for rank in range(ranks)]
        for rank in range(ranks):
            comes = (rank - step - 1) % ranks
            old = held[rank][comes]
            held[rank][comes] = [a + b for a, b in zip(old, sent[rank - 1], strict=True)]
            chunks = [list(chunk) for chunk in held[rank]]
            made.record(rank, "step", chunk=comes, chunks=chunks)
    return made.run


def test_through_rank_0_one_message_comes_after_the_other():
    assert messages.messages(star(3, 32)) == [
        Message(0, 1, 0, 32),
        Message(1, 2, 0, 32),
        Message(2, 0, 1, 32),
        Message(3, 0, 2, 32),
    ]
    assert messages.sent(star(3, 32)) == [64, 32, 32]


def test_in_a_ring_every_link_is_busy_in_every_step():
    found = messages.messages(ring(4))
    assert [message.step for message in found] == [0] * 4 + [1] * 4 + [2] * 4
    assert [message.link for message in found] == [(0, 1), (1, 2), (2, 3), (3, 0)] * 3
    assert messages.sent(ring(4)) == [48] * 4


def test_in_a_row_each_message_waits_for_the_one_before_it():
    made = Made(4)
    for rank in range(3):
        made.send(rank, rank + 1, 8)
    steps = [(message.step, message.link) for message in messages.messages(made.run)]
    assert steps == [(0, (0, 1)), (1, (1, 2)), (2, (2, 3))]


def test_messages_between_other_ranks_take_no_step_of_their_own():
    made = Made(4)
    made.send(0, 1, 8)
    made.send(2, 3, 8)
    assert [message.step for message in messages.messages(made.run)] == [0, 0]


def test_a_send_that_is_waited_for_lasts_until_then():
    calls = [
        Call(0, 0, "isend", (0, 1), 0, "x.py", 1, 0.0, 0.1, peer=1, waited=2.0, done=3.0),
        Call(0, 1, "irecv", (0, 1), 0, "x.py", 1, 0.2, 0.3, peer=1, waited=3.0, done=4.0),
        Call(0, 2, "send", (0, 1), 1, "x.py", 1, 5.0, 6.0, peer=1),
    ]
    assert [len(turn) for turn in messages.turns_of(calls)] == [2, 1]


def test_a_message_that_did_not_arrive_is_no_message():
    whole = star(2, 8)
    alone = replace(whole, ranks=(whole[0], replace(whole[1], calls=())))
    with pytest.raises(ValueError, match="no other side"):
        messages.messages(alone)
    stuck = replace(whole[1], calls=tuple(replace(c, returned=None) for c in whole[1].calls))
    with pytest.raises(ValueError, match="did not return"):
        messages.messages(replace(whole, ranks=(whole[0], stuck)))


PICTURES = {
    "links": lambda: views.links({"through rank 0": star(4, 64), "ring": ring(4)}, half="ring"),
    "small links": lambda: views.links({"<&>": star(8, 8), "ring": ring(8, 0)}),
    "busiest": lambda: views.busiest([star(4, 64)], [ring(4)], half=True),
    "ring": lambda: views.ring(ring(4)).still,
    "one rank": lambda: views.ring(ring(1)).still,
    "a frame": lambda: views.ring(ring(4)).frames[3](),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_the_same_each_time_and_leaves_ink_and_paper_to_the_theme(name):
    made = PICTURES[name]()
    assert made.svg == PICTURES[name]().svg
    drawing = made.svg.partition("</style>")[2]
    assert "var(--ink)" in drawing
    for colour in theme.DARK:
        assert colour not in drawing
    assert f'alt="{html.escape(made.sentence)}"' in made.html()
    assert made.sentence.endswith(".")


def test_links_say_how_many_messages_steps_and_bytes():
    told = repr(views.links({"through rank 0": star(4, 64), "ring": ring(4)}, half="ring"))
    assert told == (
        "through rank 0: 6 messages in 6 steps, 1 at a time; 384 bytes in all, at most 192 from "
        "one rank. ring, first half: 12 messages in 3 steps, 4 at a time; 192 bytes in all, at "
        "most 48 from one rank. With a second half as large: 384 bytes, at most 96 of them from "
        "one rank."
    )
    assert "12 messages, 12 of them empty, in 3 steps" in repr(views.links({"r": ring(4, 0)}))


def test_without_a_message_there_are_no_links():
    with pytest.raises(ValueError, match="'alone' sent anything"):
        views.links({"alone": ring(1)})


def test_the_busiest_rank_and_the_totals_are_counted_not_computed():
    told = repr(views.busiest([star(2, 32), star(4, 64)], [ring(2), ring(4)], half=True))
    assert "sends 3 times the tensor S through rank 0, 1.5 times in the ring (twice" in told
    assert "send the same either way, 6 S" in told
    wasteful = repr(views.busiest([star(4, 64)], [ring(4, entries=4)], half=True))
    assert "send 6 S and 12 S" in wasteful
    whole = repr(views.busiest([star(4, 64)], [ring(4)]))
    assert "0.75 times in the ring. All ranks together send 6 S and 3 S." in whole


def test_runs_that_do_not_go_together_are_not_compared():
    for naive, rings in (([star(2, 8)], [ring(3)]), ([], []), ([ring(1)], [ring(1)])):
        with pytest.raises(ValueError, match="same numbers of ranks"):
            views.busiest(naive, rings)


def test_a_ring_is_replayed_from_what_the_ranks_recorded():
    states, moves = ring_states.replayed(ring(3))
    assert len(states) == 3
    assert [(m.sender, m.receiver, m.chunk) for m in moves[0]] == [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
    after = states[1][1][2]  # rank 1, chunk 2
    assert (after.numbers, after.origins, after.new) == ((11, 11), {0, 1}, True)
    assert states[1][0][2].gone
    assert not states[1][1][2].gone
    assert ring_states.complete(states[2]) == {0: [0], 1: [1], 2: [2]}
    assert ring_states.complete(states[1]) == {0: [], 1: [], 2: []}


def test_a_number_that_no_message_explains_is_not_drawn():
    run = ring(3)
    last = run[2].records[-1]
    chunks = [list(chunk) for chunk in last.values["chunks"]]
    chunks[0][1] += 1
    bad = replace(last, values={**last.values, "chunks": chunks})
    ranks = (*run.ranks[:2], replace(run[2], records=(*run[2].records[:-1], bad)))
    with pytest.raises(ValueError, match="step 2: chunk 0 of rank 2 is not the sum"):
        views.ring(replace(run, ranks=ranks))


def test_a_ring_that_recorded_too_little_or_is_too_large_is_refused():
    with pytest.raises(ValueError, match='one record "start" and 6 named "step"'):
        views.ring(star(4, 8))
    with pytest.raises(ValueError, match="at most 8 ranks"):
        views.ring(ring(9))


def test_a_ring_has_two_frames_a_step_and_says_what_each_shows():
    told = [repr(frame()) for frame in views.ring(ring(3)).frames]
    assert [text.partition(":")[0].partition(",")[0] for text in told] == [
        *("Start", "Step 1 of 2", "After step 1", "Step 2 of 2", "After step 2")
    ]
    assert "rank 0 sends chunk 2 to rank 1" in told[1]
    assert "the sum over all 3 ranks" in told[-1]


def test_all_frames_have_one_size_so_that_nothing_jumps():
    frames = [frame().svg for frame in views.ring(ring(4)).frames]
    assert len({re.search(r'viewBox="[^"]*"', svg)[0] for svg in frames}) == 1


def test_in_a_frame_the_chunks_on_their_way_are_drawn_twice():
    start, moving, *_ = (frame().svg for frame in views.ring(ring(4)).frames)

    def slices(svg: str) -> int:
        return len(re.findall(r"fill: #[0-9a-f]{6}; opacity", svg))

    assert slices(start) == 16
    assert slices(moving) == 16 + 4 + 1  # the one from the last rank to the first at both ends


def test_the_slider_turns_to_a_frame_and_draws_it_once():
    drawn = []

    def frame(number: int):
        def draw():
            drawn.append(number)
            return theme.Picture("<svg/>", b"", f"Frame {number}.")

        return draw

    box = player.Player(frame(9)(), [frame(n) for n in range(3)]).widget()
    (play, slider), screen = box.children[0].children, box.children[1]
    assert (play.max, slider.max) == (2, 2)
    assert "Frame 0." in screen.value
    for value in (2, 1, 2):
        slider.value = value
        assert f"Frame {value}." in screen.value
    assert drawn == [9, 0, 2, 1]


def test_without_ipywidgets_a_player_is_its_still_picture(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ipywidgets", None)
    assert views.ring(ring(2)).widget() is None
