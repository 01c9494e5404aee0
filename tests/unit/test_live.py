"""The live view: what it reads from a run's folder, what it draws, and when it draws nothing."""

from __future__ import annotations

import json
import signal
from html import escape, unescape
from pathlib import Path

import pytest

from ddp_lessons import live, page
from ddp_lessons.bootstrap import EVENTS, rank_folder
from ddp_lessons.page import Cell, only_imports
from ddp_lessons.progress import Progress, Standing, Tail, shown, step


def add(path: Path, *lines: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        file.writelines(
            f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines
        )


def event(name: str, **facts: object) -> dict:
    return {"event": name, "time": 1.0, **facts}


def told(**values: object) -> dict:
    return {"rank": 0, "name": "progress", "time": 1.0, "line": 1, "values": values}


# what is read


def test_a_line_is_given_once_and_only_when_it_is_whole(tmp_path):
    path = tmp_path / "stdout"
    tail = Tail(path, 1000)
    assert tail.lines() == []
    path.write_bytes(b"one\ntw")
    assert tail.lines() == ["one"]
    assert tail.lines() == []
    path.write_bytes(b"one\ntwo\nthree\n")
    assert tail.lines() == ["two", "three"]


def test_of_much_new_text_the_last_whole_lines_are_given(tmp_path):
    path = tmp_path / "stdout"
    path.write_text("".join(f"line {i}\n" for i in range(10_000)))
    lines = Tail(path, 100).lines()
    assert lines[-1] == "line 9999"
    assert lines == [f"line {i}" for i in range(10_000 - len(lines), 10_000)]


def test_an_endless_line_is_no_line_and_hides_none_that_follows(tmp_path):
    path = tmp_path / "stdout"
    tail = Tail(path, 100)
    path.write_text("x" * 1000)
    assert tail.lines() == []
    path.write_text("x" * 1000 + "\nnext\n")
    assert tail.lines() == ["next"]


def test_bytes_that_are_no_text_are_shown(tmp_path):
    (tmp_path / "stdout").write_bytes(b"caf\xe9\n")
    assert Tail(tmp_path / "stdout", 100).lines() == ["caf\ufffd"]


def test_a_rank_is_followed_from_its_start_to_its_end(tmp_path):
    here = rank_folder(tmp_path, 0, 0)
    progress = Progress(tmp_path, 1, follow=1, lines=4)
    seen = [progress.look()]
    for fact in (event("started"), event("joining"), event("joined")):
        add(here / EVENTS, fact)
        seen.append(progress.look())
    add(here / "records.jsonl", told(step=3, of=10))
    add(here / "stdout", "hello")
    seen.append(progress.look())
    add(here / EVENTS, event("ended", finished=True))
    seen.append(progress.look())
    assert [live.line(rank) for (rank,) in seen] == [
        *("starting", "started", "waiting to join", "joined", "step 3 of 10"),
        "done, step 3 of 10",
    ]
    assert seen[-1][0].printed == ("hello",)


def test_a_rank_that_ended_early_has_failed(tmp_path):
    add(rank_folder(tmp_path, 0, 1) / EVENTS, event("started"), event("ended", finished=False))
    ranks = Progress(tmp_path, 2, follow=2, lines=4).look()
    assert [rank.stage for rank in ranks] == ["starting", "failed"]


def test_after_a_restart_the_newest_attempt_is_shown(tmp_path):
    first, second = (rank_folder(tmp_path, attempt, 0) for attempt in (0, 1))
    add(first / EVENTS, event("started"), event("joined"))
    add(first / "records.jsonl", told(step=7))
    add(first / "stdout", "old")
    progress = Progress(tmp_path, 1, follow=1, lines=4)
    assert progress.look() == [Standing("joined", "step 7", ("old",))]
    add(second / EVENTS, event("started"))
    assert progress.look() == [Standing("started")]
    assert progress.attempt == 1


def test_what_a_script_writes_into_its_records_by_mistake_is_passed_over(tmp_path):
    here = rank_folder(tmp_path, 0, 0)
    other = {"name": "loss", "values": {"text": "progress"}}
    bad = ['{"progress"', '["progress"]', {"name": "progress"}, {"name": "progress", "values": 3}]
    add(here / "records.jsonl", told(step=1), *bad, other)
    add(here / EVENTS, '"started"', {"event": None}, {"event": ["joined"]})
    assert Progress(tmp_path, 1, follow=1, lines=4).look() == [Standing("starting", "step 1")]


def test_only_the_followed_ranks_output_is_read_and_only_its_last_lines_kept(tmp_path):
    for rank in range(3):
        add(rank_folder(tmp_path, 0, rank) / "stdout", *(f"{rank} {i}" for i in range(100)))
    ranks = Progress(tmp_path, 3, follow=2, lines=2).look()
    assert [rank.printed for rank in ranks] == [("0 98", "0 99"), ("1 98", "1 99"), ()]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"step": 3, "of": 10}, "step 3 of 10"),
        ({"step": 3}, "step 3"),
        ({"step": 3, "of": 10, "loss": 0.12345}, "step 3 of 10, loss 0.1235"),
        ({"epoch": 2}, "epoch 2"),
        ({"step": [1, 2], "of": None}, "step [1, 2] of None"),
    ],
)
def test_a_progress_record_is_told_in_words(values, words):
    assert step(values) == words


def test_a_line_that_rewrites_itself_shows_what_it_says_last():
    assert shown("10%\r50%\r100%") == "100%"
    assert shown("windows\r") == "windows"
    assert shown("a\tb\x1b[31m") == "a       b\\x1b[31m"
    assert len(shown("x" * 10_000)) == 160


# what is drawn


def text(html: str) -> list[str]:
    """The lines that a reader sees."""
    plain = html.replace("</div>", "\n")
    while "<" in plain:
        before, _, rest = plain.partition("<")
        plain = before + rest.partition(">")[2]
    return [unescape(line) for line in plain.split("\n") if line]


def test_up_to_eight_ranks_have_a_line_each():
    for count in (1, 2, 8):
        lines = text(live.drawing("a.py", 0, 2.4, "60 s", [Standing("joined")] * count))
        assert lines == ["a.py: 2 s, at most 60 s", *(f"rank {r}  joined" for r in range(count))]


def test_of_more_ranks_the_others_are_counted_by_state():
    ranks = [Standing("joined")] * 40 + [Standing("joined", "step 2")] * 9 + [Standing("done")] * 15
    lines = text(live.drawing("a.py", 0, 2, "60 s", ranks))
    assert len(lines) == 8
    assert lines[-1] == "and 58 more ranks: 34 joined, 9 at work, 15 done"


def test_what_ranks_printed_stands_below_in_rank_order():
    ranks = [Standing("joined", "", ("a", "b")), Standing("joined", "", ("c",))]
    assert text(live.drawing("a.py", 0, 2, "60 s", ranks))[-3:] == [
        "rank 0 | a",
        "rank 0 | b",
        "rank 1 | c",
    ]


def test_a_restart_is_said():
    assert text(live.drawing("a.py", 1, 2, "60 s", [Standing()]))[0].startswith(
        "a.py, restarted 1 time:"
    )
    assert text(live.drawing("a.py", 2, 2, "60 s", [Standing()]))[0].startswith(
        "a.py, restarted 2 times"
    )


def test_everything_is_escaped():
    bad = "<script>alert('x')</script>&"
    html = live.drawing(bad, 0, 2, "60 s", [Standing("joined", bad, (bad,))])
    assert "<script" not in html
    assert html.count(escape(bad)) == 3


def test_every_colour_follows_the_notebooks_theme():
    html = live.drawing("a.py", 0, 2, "60 s", [Standing("joined", "", ("x",))])
    assert html.count("color:var(--jp-") == 1
    assert "solid var(--jp-" in html


# when


class Paper:
    def __init__(self) -> None:
        self.drawn: list[str] = []
        self.taken_away = 0

    def draw(self, html: str) -> None:
        self.drawn.append(html)

    def take_away(self) -> None:
        self.taken_away += 1


@pytest.fixture
def paper(monkeypatch):
    paper = Paper()
    monkeypatch.setattr(live, "live_page", lambda: paper)
    return paper


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 100.0

        def monotonic(self) -> float:
            return self.now

    clock = Clock()
    monkeypatch.setattr(live, "time", clock)
    return clock


def test_a_run_of_less_than_a_second_is_not_drawn(tmp_path, paper, clock):
    with live.shown(tmp_path, "a.py", 2, "60 s") as (look,):
        clock.now += 0.9
        assert look() is None  # no reason to end the run
        assert paper.drawn == []
        clock.now += 0.2
        assert look() is None
        assert len(paper.drawn) == 1


def test_nothing_is_drawn_twice(tmp_path, paper, clock):
    with live.shown(tmp_path, "a.py", 2, "60 s") as (look,):
        for _ in range(3):
            clock.now += 1.05  # the seconds that it says change
            look()
            clock.now += 0.2
            look()
    assert len(paper.drawn) == 3


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_it_is_taken_away_however_the_run_ends(tmp_path, paper, error):
    try:
        with live.shown(tmp_path, "a.py", 2, "60 s"):
            if error:
                raise error
    except (ValueError, KeyboardInterrupt) as caught:
        assert type(caught) is error
    assert paper.taken_away == 1


def test_a_second_stop_while_it_is_taken_away_leaves_nothing_either(tmp_path, paper, monkeypatch):
    inner = paper.take_away

    def interrupted() -> None:
        inner()
        if paper.taken_away == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(paper, "take_away", interrupted)
    with pytest.raises(KeyboardInterrupt), live.shown(tmp_path, "a.py", 2, "60 s"):
        pass
    assert paper.taken_away == 2


def test_plain_python_has_no_page_whatever_the_switch_says(monkeypatch, tmp_path):
    for switch in ("0", "1", "perhaps"):
        monkeypatch.setenv(page.SWITCH, switch)
        assert page.live_page() is None
    with live.shown(tmp_path, "a.py", 2, "60 s") as looks:
        assert looks == []


@pytest.fixture
def stop_raises():
    """SIGINT raises KeyboardInterrupt, also where the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_stop_while_a_message_is_on_its_way_acts_after_it(stop_raises):
    steps = []
    with pytest.raises(KeyboardInterrupt), page.undisturbed():
        signal.raise_signal(signal.SIGINT)
        steps.append("sent")
    assert steps == ["sent"]
    with pytest.raises(KeyboardInterrupt):  # and as before from then on
        signal.raise_signal(signal.SIGINT)


# what a cell has published


def message(size: int = 1) -> dict:
    return {"content": {"text": "x" * size}}


def test_a_cell_is_known_while_the_hooks_saw_every_message_that_was_counted():
    cell = Cell()
    assert not cell.is_known(0)  # it began before anybody looked
    cell.begin(10)
    assert cell.is_known(10)
    assert not cell.is_known(11)  # a message that passed no hook
    said = message()
    assert cell.saw(said) is said
    assert cell.is_known(11)
    cell.begin(20)
    assert cell.messages == []
    assert cell.is_known(20)


def test_a_cell_with_much_output_is_not_kept():
    cell = Cell()
    cell.begin(0)
    for count in range(1, 4):
        cell.saw(message(400_000))
        assert cell.is_known(count) is (count < 3)
    assert cell.messages == []


@pytest.mark.parametrize(
    ("code", "clean"),
    [
        ("from ddp_lessons import launch\nlaunch('a.py')", True),
        ("import os, sys\nimport ddp_lessons as d\nprint(1)", True),
        ("print(1)\nfrom ddp_lessons import launch", False),
        ("import os\nos.system('date')\nimport ddp_lessons", False),
        ("%matplotlib inline\nimport ddp_lessons", False),
        ("import mine", False),
        ("", False),
    ],
)
def test_a_cell_that_imports_the_package_is_clean_only_after_nothing_but_imports(code, clean):
    assert only_imports(code) is clean
