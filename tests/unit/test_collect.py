"""Reading back what ranks left in a run's folder, whole or broken off."""

from __future__ import annotations

import faulthandler
import json
from pathlib import Path

import pytest

from ddp_lessons import bootstrap, collect
from ddp_lessons.placement import place


def leave(
    folder: Path, rank: int, attempt: int = 0, events=(), records=(), **streams: bytes
) -> Path:
    here = bootstrap.rank_folder(folder, attempt, rank)
    here.mkdir(parents=True)
    (here / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    (here / "records.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    for name, text in streams.items():
        (here / name).write_bytes(text)
    return here


def read(folder: Path, ranks: int = 1, exitcodes=None):
    (folder / "spec.json").write_text(json.dumps({"source": "print()"}))
    placed = place(ranks, gpus=0, nccl=False)
    codes = dict.fromkeys(range(ranks), 0) if exitcodes is None else exitcodes
    return collect.collect("some.py", folder / "some.py", folder, placed, codes, seconds=0.5)


STARTED = {"event": "started", "time": 1.0, "pid": 41, "parent": 40, "node": 0, "local_rank": 0}
ENDED = {"event": "ended", "time": 3.0, "code": 0, "finished": True}


def test_a_rank_is_what_its_files_say(tmp_path):
    record = {"rank": 0, "name": "a", "time": 2.0, "line": 3, "values": {"x": 1}}
    leave(tmp_path, 0, events=[STARTED, ENDED], records=[record], stdout=b"out\n", stderr=b"err\n")
    (rank,) = run = read(tmp_path)
    assert run.ok and run.source == "print()"
    assert (rank.pid, rank.parent, rank.started, rank.ended) == (41, 40, 1.0, 3.0)
    assert (rank.stdout, rank.stderr, run.values("x")) == ("out\n", "err\n", [1])


def test_torchs_line_about_names_is_not_among_what_a_rank_or_the_scripts_own_process_said(tmp_path):
    line = b"[W1 socket.cpp:207] [c10d] The hostname of the client socket cannot be retrieved.\n"
    leave(tmp_path, 0, events=[STARTED, ENDED], stderr=b"before\n" + line + b"after\n")
    (tmp_path / "starter").mkdir()
    (tmp_path / "starter" / "stderr").write_bytes(line)
    run = read(tmp_path)
    assert (run[0].stderr, run.starter.stderr) == ("before\nafter\n", "")


def test_a_rank_that_left_no_file_at_all_is_there_and_not_finished(tmp_path):
    (rank,) = run = read(tmp_path, exitcodes={})
    assert not run.ok
    assert (rank.pid, rank.exitcode, rank.stdout, rank.records) == (None, None, "", ())


def test_a_line_that_a_dying_rank_did_not_complete_is_left_out(tmp_path):
    here = leave(tmp_path, 0, events=[STARTED])
    for name in ("events.jsonl", "records.jsonl"):
        with open(here / name, "a") as file:
            file.write('{"event": "ended", "finis')
    (rank,) = read(tmp_path, exitcodes={0: -9})
    assert not rank.finished and rank.records == ()


def test_the_newest_attempt_counts(tmp_path):
    leave(tmp_path, 0, attempt=0, events=[STARTED])
    leave(tmp_path, 0, attempt=10, events=[STARTED, ENDED])
    leave(tmp_path, 0, attempt=9, events=[STARTED])
    run = read(tmp_path)
    assert (run.ok, run.attempt) == (True, 10)
    assert collect.read_end(tmp_path, 0) == ENDED


def test_a_failures_frames_name_the_script_as_the_reader_does(tmp_path):
    script, other = str(tmp_path / "some.py"), str(tmp_path / "deep" / "other.py")
    frames = [[script, 3, "<module>", "f()"], [other, 8, "f", "1 / 0"]]
    failure = {"kind": "ZeroDivisionError", "message": "no", "frames": frames, "chain": ["why"]}
    end = ENDED | {"code": 1, "finished": False, "failure": failure}
    leave(tmp_path, 0, events=[STARTED, end])
    (rank,) = read(tmp_path, exitcodes={0: 1})
    assert (rank.failure.file, rank.failure.line) == ("other.py", 8)
    assert rank.failure.frames[0] == ("some.py", 3, "<module>", "f()")
    assert rank.failure.chain == ("why",)


@pytest.mark.parametrize("ending", [b"\n", b""])
def test_a_stream_too_long_to_carry_keeps_whole_lines_of_both_ends(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(collect, "KEEP", 25)
    lines = [b"line %02d" % number for number in range(40)]
    path = tmp_path / "stdout"
    path.write_bytes(b"\n".join(lines) + ending)
    assert collect.read_text(path).splitlines() == [
        *("line 00", "line 01", "line 02"),
        "… 34 lines left out, 272 bytes: the whole text is in run.log …",
        *("line 37", "line 38", "line 39"),
    ]


def test_a_stream_of_just_the_size_that_is_carried_is_carried_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(collect, "KEEP", 10)
    path = tmp_path / "stdout"
    path.write_bytes(b"x" * 20)
    assert collect.read_text(path) == "x" * 20
    path.write_bytes(b"x" * 9 + b"y" * 3 + b"z" * 9)
    head, middle, tail = collect.read_text(path).split("\n")
    assert (head, tail) == ("x" * 9 + "y", "y" + "z" * 9)
    assert middle.startswith("… 0 lines left out, 1 bytes")


@pytest.mark.parametrize("name", ["Übung.py", "é 漢 \U0001f600 \udcff/a.py", r"one\xe9two/a.py"])
def test_a_stack_is_read_whatever_the_names_in_it_are(tmp_path, name):
    script = tmp_path / "folder" / name
    source = "def größe():\n    faulthandler.dump_traceback(file)\ngröße()\n"
    script.parent.mkdir(parents=True)
    script.write_text(source, encoding="utf-8")
    with open(tmp_path / "stack", "w") as file:
        code = compile(source, str(script), "exec")
        exec(code, {"faulthandler": faulthandler, "file": file})
    frames = collect.read_stack(tmp_path / "stack", script, "the script")
    assert [(frame.line, frame.function, frame.source) for frame in frames[-2:]] == [
        (3, "<module>", "größe()"),
        (2, "größe", "faulthandler.dump_traceback(file)"),
    ]
    assert {frame.file for frame in frames[-2:]} == {"the script"}
