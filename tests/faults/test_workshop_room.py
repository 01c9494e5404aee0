"""Several people on one machine at once, as `make workshop-check` has them: what it must notice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

import workshop
import workshop_apart
import workshop_room
import workshop_traces
import workshop_user

ROOT = Path(__file__).resolve().parents[2]
RANKS = """
from ddp_lessons import launch
launch("00_start_here/add.py", 2).values("sum")
""".strip()


def course(folder: Path, **notebooks: list[tuple[str, str]]) -> tuple[Path, list[str]]:
    """A course with these notebooks, each a list of cells and the results they were committed with,
    and the notebooks' names. Its package is an empty one."""
    (folder / "ddp_lessons").mkdir()
    (folder / "ddp_lessons" / "__init__.py").touch()
    (folder / "notebooks").mkdir()
    names = []
    for name, cells in notebooks.items():
        made = []
        for count, (source, result) in enumerate(cells, 1):
            said = new_output("execute_result", {"text/plain": result}, execution_count=count)
            made.append(
                new_code_cell(source, execution_count=count, outputs=[said][: bool(result)])
            )
        nbformat.write(new_notebook(cells=made), folder / "notebooks" / f"{name}.ipynb")
        names.append(f"notebooks/{name}.ipynb")
    return folder, names


@pytest.mark.slow
def test_two_people_go_through_a_lesson_each_with_ranks_of_their_own(tmp_path, monkeypatch):
    rooms = []
    share = workshop_room.share
    monkeypatch.setattr(
        workshop_room, "share", lambda root, room: rooms.append(room) or share(root, room)
    )
    root, names = course(tmp_path, lesson=[(RANKS, "[3, 3]")])
    shutil.rmtree(root / "ddp_lessons")
    shutil.copytree(ROOT / "ddp_lessons", root / "ddp_lessons")
    report = workshop_room.hold(root, 2, names, every=0.05, closed=True)
    assert report.ok, workshop.told(report)
    assert [(one.user, one.name, one.ranks) for one in report.lessons] == [
        (1, "notebooks/lesson.ipynb", 2),
        (2, "notebooks/lesson.ipynb", 2),
    ]
    for one in report.lessons:  # a kernel that has imported torch, and its server
        assert one.cpu > 0.5 and one.peak > 100 * 2**20
    assert max(report.peaks) <= report.peak <= sum(report.peaks)
    assert [room.exists() for room in rooms] == [False]


def test_what_differs_raises_strays_or_stays_is_a_failure_with_its_name(tmp_path, monkeypatch):
    monkeypatch.setattr(workshop_room, "GONE", 1.0)
    monkeypatch.setattr(workshop_room, "changed", lambda *_: ["notebooks/right.ipynb"])
    stray = Path(tempfile.gettempdir(), f"stray-{uuid.uuid4().hex}")
    sleeper = "import subprocess, sys\nchild = subprocess.Popen("
    sleeper += "[sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)"
    root, names = course(
        tmp_path,
        right=[("1 + 1", "2")],
        differs=[("1 + 1", "2"), ("1 + 2", "4")],
        raises=[("1 / 0", "")],
        strays=[(f"open({str(stray)!r}, 'w').close()", "")],
        stays=[(sleeper, "")],
    )
    try:
        report = workshop_room.hold(root, 1, [*names, "notebooks/missing.ipynb"], closed=True)
    finally:
        stray.unlink(missing_ok=True)
    assert not report.ok
    faults = {Path(one.name).stem: "\n".join(one.faults) for one in report.lessons}
    assert faults["right"] == faults["strays"] == faults["stays"] == ""
    assert faults["differs"].startswith("cell 2 (1 + 2):\n  was ['4']\n  now ['3']")
    assert faults["raises"].startswith("cell 1:") and "ZeroDivisionError" in faults["raises"]
    assert "was not gone through" in faults["missing"]
    assert "the read-only course has changed: notebooks/right.ipynb" in report.faults
    outlived = [one for one in report.faults if one.startswith("a process outlived its kernel")]
    assert len(outlived) == 1 and "time.sleep(600)" in outlived[0]
    if workshop_room.separation() in workshop_apart.OWN_UIDS:
        assert f"written outside of everybody's folders: {stray}" in report.faults
    told = workshop.told(report)
    assert "person 1, notebooks/raises.ipynb, cell 1:" in told
    assert "6 notebooks gone through, 3 failed" in told


def test_nobody_but_root_can_write_into_the_shared_course(tmp_path: Path):
    write = "from pathlib import Path\nimport ddp_lessons\n"
    write += "Path(ddp_lessons.__file__).write_text('mine')"
    root, names = course(tmp_path, writes=[(write, "")])
    report = workshop_room.hold(root, 1, names, closed=True)
    assert not report.ok
    faults = "\n".join([*report.lessons[0].faults, *report.faults])
    if workshop_room.separation() == "root":
        assert "the read-only course has changed: ddp_lessons/__init__.py" in faults
    else:
        assert "PermissionError" in faults


def test_a_python_that_only_root_may_read_fails_the_check_unless_it_is_known(
    tmp_path, monkeypatch, capsys
):
    """Here the first person's process need not even start: what the room says is looked at."""
    monkeypatch.setattr(workshop_room, "separation", lambda: "reader")
    monkeypatch.setattr(workshop_room, "begin", idle)
    monkeypatch.setattr(workshop_room, "cannot_start", lambda: "people cannot start it")
    root, _ = course(tmp_path)
    assert workshop_room.hold(root, 1, [], closed=True).ok
    report = workshop_room.hold(root, 1, [])
    assert report.faults == ("people cannot start it",) and not report.ok
    assert workshop.told(report).endswith("people cannot start it")


def idle(person: workshop_room.Person, *_: object) -> None:
    person.process = subprocess.Popen([sys.executable, "-c", ""])


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no permissions of this kind here")
def test_the_closed_place_on_the_way_to_a_python_is_named(tmp_path):
    closed = tmp_path / "root" / "versions"
    closed.mkdir(parents=True)
    (closed / "python3").touch(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to("python3")
    (tmp_path / "bin" / "python3").symlink_to(closed / "python3")
    while (
        place := workshop_apart.closed_place(tmp_path / "bin" / "python")
    ) in tmp_path.parents or (place == tmp_path):
        place.chmod(place.stat().st_mode | 0o001)
    assert place == tmp_path / "bin" / "python"
    (tmp_path / "root").chmod(0o700)
    assert workshop_apart.closed_place(tmp_path / "bin" / "python") == tmp_path / "root"


def test_nobody_who_has_a_name_here_is_taken_for_one_of_the_room(monkeypatch):
    pwd = pytest.importorskip("pwd")
    first = workshop_apart.FIRST_UID

    def getpwuid(uid: int) -> str:
        if uid in (first, first + 2):
            return "somebody"
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", getpwuid)
    assert workshop_apart.free_uids(3) == [first + 1, first + 3, first + 4]


@pytest.mark.parametrize("people", ["0", "-3", "many"])
def test_a_room_of_nobody_is_refused_in_one_sentence(people, capsys):
    with pytest.raises(SystemExit) as ended:
        workshop.main(["check", "--people", people])
    assert ended.value.code == 2
    assert f"{people} people are no room" in capsys.readouterr().err


def test_the_shared_course_is_whole_and_nobody_may_write_there(tmp_path: Path):
    root, (name,) = course(tmp_path, one=[("1 + 1", "2")])
    shared = workshop_room.share(root, tmp_path / "room")
    assert {path.stat().st_mode & 0o222 for path in [shared, *shared.rglob("*")]} == {0}
    assert (shared / name).read_bytes() == (root / name).read_bytes()


def test_a_person_who_used_another_package_is_a_failure(tmp_path: Path):
    person = workshop_room.Person(1, tmp_path, uid=0)
    for number, package in enumerate((tmp_path / "ddp_lessons", "/other/ddp_lessons")):
        person.ended.append({"ended": str(number), "package": str(package), "faults": []})
    right, wrong = workshop_room.results(person, ["0", "1"], tmp_path)
    assert right.faults == ()
    assert wrong.faults == ("used the package in /other/ddp_lessons, not the shared one",)


def test_of_a_cell_all_is_compared_that_nbval_compares():
    outputs = [
        new_output("stream", name="stdout", text="printed\n"),
        new_output("stream", name="stderr", text="complained\n"),
        new_output("display_data", {"text/plain": "drawn", "text/html": "<b>drawn</b>"}),
        new_output("error", ename="E", evalue="\x1b[1mwrong\x1b[0m", traceback=["frames"]),
    ]
    cell = new_code_cell("", outputs=outputs)
    assert workshop_user.text(cell) == ["printed\n", "drawn", "E: wrong"]


def test_every_change_of_the_course_is_seen(tmp_path: Path):
    for name in ("same", "edited", "gone"):
        (tmp_path / name).write_text(name)
    before = workshop_traces.digest(tmp_path)
    assert workshop_traces.changed(before, tmp_path) == []
    (tmp_path / "edited").write_text("mine")
    (tmp_path / "gone").unlink()
    (tmp_path / "new").mkdir()
    (tmp_path / "same").chmod(0o400)
    assert workshop_traces.changed(before, tmp_path) == ["edited", "gone", "new", "same"]


@pytest.mark.slow
def test_eight_people_go_through_the_first_four_lessons_at_once():
    report = workshop_room.hold(ROOT, 8, workshop.notebooks([], 4), closed=True)
    assert report.ok, workshop.told(report)
