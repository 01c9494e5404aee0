"""What an instructor reads from collected answer sheets: the sums, and what was left out."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from ddp_lessons import __main__ as command
from ddp_lessons import objectives
from ddp_lessons.objectives import gain, sheets

ROOT = Path(__file__).resolve().parents[2]
TOPIC = objectives.find("06_gradient_averaging")
KEY = "".join(one.right for one in TOPIC.questions)
BAD = "".join("b" if x == "a" else "a" for x in KEY)


def sheet(before: str, after: str, topic: objectives.Topic = TOPIC, **more) -> sheets.Sheet:
    return sheets.Sheet(**{**asdict(sheets.new(topic)), "before": before, "after": after, **more})


def put(path: Path, found: sheets.Sheet) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(found)), encoding="utf-8")
    return path


def test_the_means_and_the_normalised_gain():
    right_once = KEY[0] + BAD[1:]
    people = [sheet(right_once, KEY), sheet(right_once, KEY[:2] + BAD[2]), sheet(BAD, BAD)]
    (found,) = gain.gains(people)
    assert found.people == 3
    assert found.before == pytest.approx(2 / 3)
    assert found.after == pytest.approx(5 / 3)
    assert found.gain == pytest.approx(1)
    assert found.normalised == pytest.approx(1 / (3 - 2 / 3))
    shares = [(one.before, one.after) for one in found.questions]
    assert shares == [pytest.approx(pair) for pair in ((2 / 3, 2 / 3), (0, 2 / 3), (0, 1 / 3))]


def test_people_who_answered_once_are_counted_apart():
    (found,) = gain.gains([sheet(BAD, KEY), sheet(BAD, ""), sheet("", KEY), sheet("", BAD)])
    assert (found.people, found.only_before, found.only_after) == (1, 1, 2)
    assert (found.before, found.after) == (0, 3)


def test_nobody_in_both_has_no_means_and_no_division_by_zero():
    (found,) = gain.gains([sheet(BAD, "")])
    assert (found.people, found.normalised) == (0, None)
    assert "06_gradient_averaging       0       -      -     -           -" in gain.report(
        gain.Collected((sheet(BAD, ""),), ())
    )


def test_who_knew_all_before_can_gain_nothing():
    (found,) = gain.gains([sheet(KEY, KEY)])
    assert found.normalised is None
    assert found.gain == 0


def test_a_loss_is_told_as_a_loss():
    (found,) = gain.gains([sheet(KEY, BAD), sheet(BAD, BAD)])
    assert found.gain == -1.5
    assert found.normalised == -1


def test_what_most_still_believe_is_named_and_not_knowing_is_no_belief():
    people = [sheet("???", after) for after in (BAD, BAD, KEY[:2] + "?", "???")]
    (found,) = gain.gains(people)
    assert [(one.believed, one.believers) for one in found.questions] == [(x, 2) for x in BAD]
    text = gain.report(gain.Collected(tuple(people), ()))
    assert f"2 of 4 still say: {BAD[0]}  {TOPIC.questions[0].choice(BAD[0])}" in text
    (known,) = gain.gains([sheet("???", KEY), sheet("???", "???")])
    assert {(one.believed, one.believers) for one in known.questions} == {("", 0)}


def test_lessons_stand_in_course_order_with_their_own_people():
    first = objectives.find("00_start_here")
    key = "".join(one.right for one in first.questions)
    found = gain.gains([sheet(BAD, KEY), sheet("???", key, first), sheet(BAD, KEY)])
    assert [(one.lesson, one.people) for one in found] == [
        ("00_start_here", 1),
        ("06_gradient_averaging", 2),
    ]


def test_a_folder_of_folders_and_single_files_are_read(tmp_path):
    put(tmp_path / "all" / "ada" / "answers" / "questions" / "06.json", sheet(BAD, KEY))
    put(tmp_path / "all" / "bob" / "06.json", sheet(BAD, KEY))
    one = put(tmp_path / "mail" / "06 (1).json", sheet(BAD, KEY))
    collected = gain.collect([tmp_path / "all", one, tmp_path / "all" / "bob"])
    assert len(collected.sheets) == 3
    assert collected.left_out == ()


def test_one_sheet_that_was_collected_twice_counts_once_and_the_fuller_one(tmp_path):
    early = sheet(BAD, "")
    late = sheet(BAD, KEY, number=early.number)
    put(tmp_path / "1" / "a.json", early)
    put(tmp_path / "2" / "b.json", late)
    shutil.copy(tmp_path / "2" / "b.json", tmp_path / "2" / "c.json")
    put(tmp_path / "3" / ".ipynb_checkpoints" / "d.json", late)
    collected = gain.collect([tmp_path])
    assert [(one.before, one.after) for one in collected.sheets] == [(BAD, KEY)]
    assert sorted(Path(line.partition(": ")[0]).name for line in collected.left_out) == [
        "a.json",
        "c.json",
    ]
    assert all("counted once" in line for line in collected.left_out)


def test_a_link_to_a_folder_is_named_and_not_followed(tmp_path):
    put(tmp_path / "home" / "ada" / "06.json", sheet(BAD, KEY))
    put(tmp_path / "all" / "bob.json", sheet(BAD, KEY))
    (tmp_path / "all" / "ada").symlink_to(tmp_path / "home" / "ada")
    collected = gain.collect([tmp_path / "all"])
    assert len(collected.sheets) == 1
    assert collected.left_out == (
        f"{tmp_path / 'all' / 'ada'}: a link to a folder, which is not followed",
    )
    assert len(gain.collect([tmp_path / "all", tmp_path / "all" / "ada"]).sheets) == 2


def test_what_cannot_be_reached_is_named_and_the_others_count(tmp_path):
    put(tmp_path / "good.json", sheet(BAD, KEY))
    (tmp_path / "loop.json").symlink_to("loop.json")
    collected = gain.collect([tmp_path, tmp_path / ("a" * 300)])
    assert len(collected.sheets) == 1
    assert [line.rpartition(": ")[2] for line in collected.left_out] == [
        os.strerror(errno.ELOOP),
        os.strerror(errno.ENAMETOOLONG),
    ]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_is_named_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.json")
    command = [sys.executable, "-m", "ddp_lessons", "gain", str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert "a.json: it is no file" in done.stdout


def test_a_folder_that_nobody_may_look_into_is_named(tmp_path, monkeypatch):
    put(tmp_path / "open" / "06.json", sheet(BAD, KEY))
    put(tmp_path / "closed" / "06.json", sheet(BAD, KEY))
    scandir = os.scandir

    def guarded(path):  # permissions would not hold root back
        if Path(path).name == "closed":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    collected = gain.collect([tmp_path])
    assert len(collected.sheets) == 1
    assert collected.left_out == (f"{tmp_path / 'closed'}: Permission denied",)


def test_two_readers_with_one_number_are_not_told_to_have_said_the_same(tmp_path):
    """Somebody answered before the course was copied for all."""
    first = sheet(BAD, KEY)
    put(tmp_path / "ada.json", first)
    put(tmp_path / "bob.json", sheet(BAD, BAD, number=first.number))
    collected = gain.collect([tmp_path])
    assert collected.sheets == (first,)
    (line,) = collected.left_out
    assert line.startswith(
        f"{tmp_path / 'bob.json'}: has the number of {tmp_path / 'ada.json'} and"
    )


FOREIGN = {
    "broken.json": (b"{", "no JSON"),
    "empty.json": (b"", "no JSON"),
    "bytes.json": (b"\xff\xfe\x00", "no JSON"),
    "foreign.json": (b'{"cells": []}', "no answer sheet"),
    "list.json": (b"[1]", "no answer sheet"),
    "large.json": (b" " * 20_000, "too large"),
    "deep.json": (b"[" * 9_000, "no JSON"),
}


def test_a_file_that_is_no_sheet_is_named_with_the_reason(tmp_path):
    for name, (content, _) in FOREIGN.items():
        (tmp_path / name).write_bytes(content)
    put(tmp_path / "lesson.json", sheet(BAD, KEY, lesson="99_none"))
    put(tmp_path / "long.json", sheet(BAD, KEY, lesson="x" * 9000))
    put(tmp_path / "old.json", sheet(BAD, KEY, version="other"))
    put(tmp_path / "letters.json", sheet("xyz", KEY))
    put(tmp_path / "short.json", sheet(BAD[:2], KEY))
    put(tmp_path / "good.json", sheet(BAD, KEY))
    collected = gain.collect([tmp_path, tmp_path / "nowhere.json"])
    assert len(collected.sheets) == 1
    told = {Path(line.partition(": ")[0]).name: line for line in collected.left_out}
    reasons = {name: reason for name, (_, reason) in FOREIGN.items()} | {
        "lesson.json": "99_none",
        "long.json": "no lesson 'xxx",
        "old.json": "another version",
        "letters.json": "'x'",
        "short.json": "3 letters",
        "nowhere.json": "No such file",
    }
    assert set(told) == set(reasons)
    for name, reason in reasons.items():
        assert reason in told[name]
        assert len(told[name]) < len(str(tmp_path)) + 150


def test_a_files_name_draws_nothing_on_the_terminal(tmp_path):
    (tmp_path / "a\x1b[31m\nlesson.json").write_text("{")
    (line,) = gain.collect([tmp_path]).left_out
    assert line.isprintable()


def test_the_command_prints_the_table_and_ends_with_0(tmp_path, capsys):
    put(tmp_path / "ada.json", sheet(KEY[0] + "??", KEY))
    (tmp_path / "bad.json").write_text("{")
    assert command.main(["gain", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "lesson                 people  before  after  gain  normalised" in text
    assert "06_gradient_averaging       1    1.00   3.00  2.00        1.00" in text
    assert f"1    100%   100%  {TOPIC.questions[0].objective}" in text
    assert f"2      0%   100%  {TOPIC.questions[1].objective}" in text
    assert "bad.json: it is no JSON" in text
    assert "Hake 1998" in text


def test_several_homes_are_read_though_all_sheets_have_one_name(tmp_path, capsys):
    homes = [tmp_path / name / "ddp" for name in ("ada", "bob", "eve")]
    for home in homes:
        put(home / "notebooks" / sheets.shown(TOPIC.lesson), sheet(BAD, KEY))
    assert command.main(["gain", *map(str, homes)]) == 0
    text = capsys.readouterr().out
    assert "06_gradient_averaging       3" in text and "Left out" not in text


def test_sheets_in_one_folder_count_whatever_their_files_are_called(tmp_path):
    for name in ("ada.json", "06_gradient_averaging.json", "06_gradient_averaging (1).json"):
        put(tmp_path / name, sheet(BAD, KEY))
    assert len(gain.collect([tmp_path]).sheets) == 3


@pytest.mark.skipif(os.name == "nt", reason="no pipes of this kind here")
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_a_reader_that_closes_the_pipe_early_leaves_no_traceback(tmp_path, form):
    put(tmp_path / "06.json", sheet(BAD, KEY))
    reading, writing = os.pipe()
    os.close(reading)
    told = [sys.executable, "-m", "ddp_lessons", "gain", *form, str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    try:
        done = subprocess.run(told, env=env, stdout=writing, stderr=subprocess.PIPE, timeout=60)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_command_ends_with_1_where_no_sheet_is(tmp_path, capsys):
    assert command.main(["gain", str(tmp_path)]) == 1
    assert "No answer sheet was found" in capsys.readouterr().out


def test_a_program_gets_the_same_numbers(tmp_path, capsys):
    put(tmp_path / "ada.json", sheet(KEY[0] + "??", KEY))
    (tmp_path / "bad.json").write_text("{")
    assert command.main(["gain", "--json", str(tmp_path)]) == 0
    told = json.loads(capsys.readouterr().out)
    (lesson,) = told["lessons"]
    assert (lesson["before"], lesson["after"], lesson["gain"]) == (1, 3, 2)
    assert lesson["normalised"] == 1
    assert [one["before"] for one in lesson["questions"]] == [1, 0, 0]
    assert len(told["left_out"]) == 1
