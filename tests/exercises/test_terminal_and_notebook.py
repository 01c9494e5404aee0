"""check() where readers call it: in a terminal, and in a real kernel."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import bank
import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from processes import gone, in_groups, kernel, until

from ddp_lessons.__main__ import main
from ddp_lessons.checks import exercise

ROOT = Path(__file__).resolve().parents[2]
KEY = "04_collectives/all_gather"
SLUG = KEY.partition("/")[0]
WRONG = next(one.path for one in bank.answers(KEY) if one.diagnosis == "one_buffer")
RIGHT = next(one.path for one in bank.answers(KEY) if one.right)
# Line 5 of the cell raises, the magic's own line counted.
RAISES = f"%%exercise {KEY}\nimport torch\n\ndef all_gather(x):\n    raise ValueError('no luck')"
MARK = "%%exercise "


# In a terminal.


def terminal(*arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ddp_lessons", *map(str, arguments)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120)


def test_a_right_answer_in_a_terminal_ends_with_0(tmp_path):
    done = terminal("check", KEY, ROOT / "solutions" / f"{SLUG}.ipynb", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    first, *others = done.stdout.splitlines()
    assert first == f"{KEY}: passed"
    assert others == [f"  ok  {one}" for one in exercise.find(KEY).requirements.values()]
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_answer_in_a_terminal_ends_with_1(tmp_path):
    done = terminal("check", KEY, WRONG, folder=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    first, *others = done.stdout.splitlines()
    assert first == f"{KEY}: not passed"
    assert others[-1] == exercise.find(KEY).mistakes["one_buffer"]
    assert any(line.startswith("With 2 ranks") for line in others)


def said(capsys, *arguments: object) -> str:
    """What a command that must end with 1 prints."""
    assert main(["check", *map(str, arguments)]) == 1
    return capsys.readouterr().out.removesuffix("\n")


def test_an_exercise_notebook_as_handed_out_is_not_written_yet(capsys):
    told = said(capsys, KEY, ROOT / "exercises" / f"{SLUG}.ipynb")
    line = re.search(r"all_gather\(\) is not written yet, line (\d+)", told)[1]
    cells = nbformat.read(ROOT / "exercises" / f"{SLUG}.ipynb", as_version=4).cells
    cell = next(cell.source for cell in cells if cell.source.startswith(MARK))
    assert "NotImplementedError" in cell.splitlines()[int(line) - 1]
    assert "?   each rank makes one broadcast" in told


def test_a_file_that_is_not_there_is_one_sentence(capsys, tmp_path):
    assert said(capsys, KEY, "nowhere.py") == "there is no file 'nowhere.py'"
    assert said(capsys, KEY, tmp_path) == f"there is no file {str(tmp_path)!r}"


def test_an_unknown_key_names_the_nearest(capsys):
    told = said(capsys, "04_collectives/allgather", RIGHT)
    assert told == f"there is no exercise '04_collectives/allgather'. Did you mean {KEY}?"
    assert said(capsys, "zzz", RIGHT) == "there is no exercise 'zzz'."


def test_a_notebook_without_the_cell_is_one_sentence(capsys, tmp_path):
    path = tmp_path / "other.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell("check()")]), path)
    assert said(capsys, KEY, path) == f"other.ipynb has no cell that begins with {MARK}{KEY}"
    path.write_text("{}")
    assert said(capsys, KEY, path) == "other.ipynb is not a notebook"
    path.write_bytes(b"\xff\xfe")
    assert said(capsys, KEY, path) == "other.ipynb is not a notebook"


def test_of_two_cells_for_a_key_the_last_counts(capsys, tmp_path):
    path = tmp_path / "twice.ipynb"
    right = f"{MARK}{KEY}\n{RIGHT.read_text()}"
    nbformat.write(new_notebook(cells=[new_code_cell(right), new_code_cell(RAISES)]), path)
    assert "line 5: ValueError: no luck" in said(capsys, KEY, path)


def test_a_command_without_its_arguments_shows_the_usage(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["check"])
    assert caught.value.code == 2
    assert "KEY PATH" in capsys.readouterr().err


# In a kernel.


@pytest.fixture
def executed(tmp_path: Path) -> Callable[..., list[nbformat.NotebookNode]]:
    """Execute cells in a kernel of their own, in tmp_path, and return them."""

    def executed(*sources: str) -> list[nbformat.NotebookNode]:
        notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
        resources = {"metadata": {"path": str(tmp_path)}}
        NotebookClient(notebook, timeout=120, allow_errors=True, resources=resources).execute()
        return notebook.cells

    return executed


IMPORT = "from ddp_lessons import check"
CHECK = f'check("{KEY}")'


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def test_an_answer_in_a_cell_is_written_and_checked(executed, tmp_path, capsys):
    right = f"{MARK}{KEY}\n{RIGHT.read_text()}"
    _, written, first, _, second, third = executed(
        IMPORT,
        right,
        CHECK,
        RAISES,
        CHECK,
        f"try:\n    {CHECK}\nexcept AssertionError as e:\n    print(e.verdict.mistake)",
    )
    assert written.outputs[0].text == f"written to answers/{KEY}.py\n"
    assert first.outputs[0].data["text/plain"].startswith(f"{KEY}: passed")
    assert "✓ held" in first.outputs[0].data["text/html"]

    (failed,) = second.outputs
    assert failed.ename == "CheckError"
    # Line numbers are the cell's: its fifth line raises.
    assert "line 5: ValueError: no luck" in failed.evalue
    assert failed.evalue.startswith(f"{KEY}: not passed")
    [shown] = failed.traceback  # in lines of its own
    assert plain(shown).split() == f"CheckError: {failed.evalue}".split()
    assert third.outputs[0].text == "raises\n"

    # The file that the magic has left is an answer for the terminal, and gets the same words.
    assert said(capsys, KEY, tmp_path / "answers" / f"{KEY}.py") == failed.evalue


def test_a_check_before_its_cell_and_wrong_cells_are_one_sentence_each(executed):
    _, early, syntax, unknown, bare = executed(
        IMPORT,
        CHECK,
        f"{MARK}{KEY}\ndef all_gather(x)\n    return x",
        f"{MARK}04_collectives/allgather\npass",
        'check("all_gather")',
    )
    found = [cell.outputs[0] for cell in (early, syntax, unknown, bare)]
    assert [one.ename for one in found] == [
        *("FileNotFoundError", "ScriptError", "ValueError", "ValueError")
    ]
    assert f"run the cell that begins with {MARK}{KEY} first" in found[0].evalue
    assert "line 2: SyntaxError" in found[1].evalue
    assert all(f"Did you mean {KEY}?" in one.evalue for one in found[2:])
    assert all(len(one.traceback) == 1 for one in found)


def test_a_folder_that_takes_no_files_keeps_no_reader_from_a_check(executed, tmp_path):
    (tmp_path / "answers").write_text("in the way")  # a superuser may write into any folder
    tmp_path.chmod(0o555)
    _, written, checked = executed(IMPORT, f"{MARK}{KEY}\n{RIGHT.read_text()}", CHECK)
    tmp_path.chmod(0o755)
    assert written.outputs[0].text == ("written to a temporary file, for this folder takes none\n")
    assert checked.outputs[0].data["text/plain"].startswith(f"{KEY}: passed")


HANGS = """\
import os, pathlib, time

def all_gather(x):
    (pathlib.Path({folder!r}) / str(os.getpid())).touch()
    time.sleep(600)
"""


def test_stop_ends_a_check_and_all_its_processes(tmp_path):
    folder = tmp_path / "there"
    folder.mkdir()
    answer = tmp_path / "answer.py"
    answer.write_text(HANGS.format(folder=str(folder)))
    with kernel() as started:
        cell = started.begin(f"{IMPORT}\ncheck({KEY!r}, {str(answer)!r})")
        pids = until(lambda: {int(path.name) for path in folder.iterdir()})
        started.interrupt()
        reply = started.reply(cell)
        assert (reply["ename"], reply["evalue"]) == ("KeyboardInterrupt", "1 rank stopped")
        assert not any("checks/" in line for line in reply["traceback"])
        gone(lambda: in_groups(pids), 5)
        answer.write_text(RIGHT.read_text())
        assert "passed" in started.run(f"print(check({KEY!r}, {str(answer)!r}))")
