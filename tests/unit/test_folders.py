"""Each process has a folder of its own, and takes away what dead ones have left."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from ddp_lessons import folders

KEEP_ONE = "from ddp_lessons import folders; print(folders.session(), flush=True); "


def in_a_process(code: str, home: Path) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", KEEP_ONE + code],
        env={**os.environ, "TMPDIR": str(home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_runs_and_cells_have_new_folders_in_the_sessions_own(tmp_path):
    one, other, cell = folders.new_run(), folders.new_run(), folders.cell_file()
    assert len({one, other, cell.parent}) == 3
    assert {one.parent, other.parent, cell.parent.parent} == {folders.session()}
    assert folders.is_cell(cell) and not folders.is_cell(tmp_path / "cell.py")
    assert folders.session().stat().st_mode & 0o077 == 0


def test_threads_that_ask_at_once_get_one_session():
    folders._session.cache_clear()
    found, gate = [], threading.Barrier(8)

    def ask() -> None:
        gate.wait()
        found.append(folders.session())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 1


def test_a_folder_goes_when_its_process_ends(tmp_path):
    process = in_a_process("", tmp_path)
    path = Path(process.communicate(timeout=60)[0].strip())
    assert path.parent == tmp_path and not path.exists()


def test_the_folder_of_a_killed_process_is_removed_by_the_next_and_a_living_ones_stays(tmp_path):
    alive = in_a_process("input()", tmp_path)
    killed = in_a_process("input()", tmp_path)
    kept, left = (Path(process.stdout.readline().strip()) for process in (alive, killed))
    killed.kill()
    killed.communicate(timeout=60)
    assert left.exists()
    in_a_process("", tmp_path).communicate(timeout=60)
    assert kept.exists() and not left.exists()
    alive.communicate("\n", timeout=60)


def test_a_folder_that_is_not_ours_is_left_alone(tmp_path):
    stranger = tmp_path / f"{folders.PREFIX}of-somebody"
    stranger.mkdir()
    in_a_process("", tmp_path).communicate(timeout=60)
    assert stranger.exists()


def test_a_forked_process_gets_a_session_of_its_own_and_leaves_its_parents():
    mine = folders.session()
    code = (
        "import os, sys; pid = os.fork(); print(folders.session(), flush=True)\nif pid: os.wait()"
    )
    process = in_a_process(code, Path(tempfile.gettempdir()))
    lines = process.communicate(timeout=60)[0].split()
    assert len(set(lines)) == 2 and str(mine) not in lines
    assert not any(Path(line).exists() for line in lines)
