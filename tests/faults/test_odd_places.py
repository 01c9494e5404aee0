"""Places where programs like to break: a full disk, read-only folders, names nobody expects."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import uuid
from pathlib import Path

import pytest
from processes import GENEROUS, gone, marked

import ddp_lessons
from ddp_lessons import report

# The user with the least rights, who may still read where this Python lies.
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
NOBODY += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]

ROOT = Path(ddp_lessons.__file__).parent.parent


def python(program: str, mounts: str = "", nobody: bool = False, **env: object) -> str:
    """What a program prints that runs after these mounts, which it alone can see, as a user without
    a name if this user may do that. Nothing may be on its stderr, nothing started may outlive it.
    """
    mark = f"fault-test-{uuid.uuid4()}"
    command = [sys.executable, "-c", textwrap.dedent(program)]
    if nobody and os.getuid() == 0:
        command = [*NOBODY, *command]
    if mounts:
        command = [*namespace(), "sh", "-ec", f'{mounts}\nexec "$@"', "sh", *command]
    env = os.environ | {"FAULT_TEST": mark} | {name: str(value) for name, value in env.items()}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=2 * GENEROUS)
    assert (done.returncode, done.stderr) == (0, "")
    gone(lambda: marked(mark), 2)
    return done.stdout


def namespace() -> list[str]:
    """The start of a command that may mount what it likes, for itself. Not every system has one."""
    for command in (["unshare", "--mount"], ["unshare", "--map-root-user", "--mount"]):
        tried = [*command, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
        if shutil.which("unshare") and not subprocess.run(tried, capture_output=True).returncode:
            return command
    pytest.skip("no mounts of our own on this system")


def test_a_disk_that_fills_up_is_told_in_one_sentence_and_no_run_is_a_success(script, tmp_path):
    chatty = script("while True:\n    print('x' * 1000)\n", name="chatty.py")
    hello = script("print('hello')\n", name="hello.py")
    said = python(
        f"""
        import os
        from pathlib import Path
        from ddp_lessons import WorkerError, launch

        assert launch({str(hello)!r}).ok
        try:
            launch({str(chatty)!r})
        except WorkerError as error:
            print(error.run.ok, *str(error).splitlines(), sep="\\n")
            here = error.run.log
        try:
            launch({str(hello)!r})
        except OSError as error:
            print(error)
        for full in here.glob("attempt_0/rank_*/stdout"):
            full.unlink()  # on a busy machine one rank may have filled the disk alone
        print(launch({str(hello)!r}).ok)
        """,
        mounts="mount -t tmpfs -o size=4m tmpfs /mnt",
        TMPDIR="/mnt",
    )
    ok, first, *rest, before, after = said.splitlines()
    assert (ok, after) == ("False", "True")
    assert "rank" in first and "line 2: OSError: [Errno 28] No space left on device" in first
    assert [line.strip() for line in rest].count("T" + report.DISK_FULL[1:]) == 1
    assert before == f"[Errno 28] {report.DISK_FULL}"


@pytest.mark.parametrize("engine", ["forkserver", pytest.param("torchrun", marks=pytest.mark.slow)])
def test_a_read_only_course_and_a_home_that_is_not_there_are_in_the_way_of_no_user(
    script, tmp_path, engine
):
    path = script("""
        import os
        from pathlib import Path
        from ddp_lessons.worker import process_group, record
        try:
            Path("new").touch()
        except OSError as error:
            record("write", error=type(error).__name__)
        with process_group():
            record("met", home=os.environ["HOME"], root=os.getuid() == 0)
    """)
    mounts = "\n".join(
        f"mount --bind '{place}' '{place}'\nmount -o remount,bind,ro '{place}'"
        for place in (ROOT, path.parent)
    )
    home = path.parent / "nobody"
    temporary = Path("/dev/shm")  # what is mounted read-only may have all others in it
    program = f"""
        import os
        os.chdir({str(path.parent)!r})
        from ddp_lessons import launch
        run = launch({str(path)!r}, 2, engine={engine!r})
        print(run.values("error"), run.values("home"), run.values("root"))
    """
    said = python(program, mounts, nobody=True, HOME=home, TMPDIR=temporary)
    assert said == f"{['OSError'] * 2} {[str(home)] * 2} {[False] * 2}\n"


@pytest.mark.parametrize("engine", ["forkserver", pytest.param("torchrun", marks=pytest.mark.slow)])
def test_a_clone_in_a_folder_with_spaces_and_accents_works(tmp_path, engine):
    clone = tmp_path / "Études & “DDP” 100 % ünï"
    shutil.copytree(ROOT / "ddp_lessons", clone / "ddp_lessons")
    (clone / "temporäre dinge").mkdir()
    (clone / "mein skript.py").write_text(
        "import os, neighbour\nprint(os.getcwd() == os.path.dirname(__file__), neighbour.word)\n"
    )
    (clone / "neighbour.py").write_text("word = 'café'\n", encoding="utf-8")
    said = python(
        f"""
        import os
        os.chdir({str(clone)!r})
        import ddp_lessons
        assert ddp_lessons.__file__.startswith({str(clone)!r})
        print(ddp_lessons.launch("mein skript.py", 2, engine={engine!r}))
        assert ddp_lessons.launch("00_start_here/hello.py", 2).ok
        """,
        PYTHONPATH=clone,
        TMPDIR=clone / "temporäre dinge",
    )
    assert said == "mein skript.py on 2 ranks: ok\nrank 0 | True café\nrank 1 | True café\n"


def test_a_small_dev_shm_is_told_by_the_machine_check():
    said = python(
        """
        from ddp_lessons import check_machine
        machine = check_machine()
        print(machine.works, *[line for line in machine.advice if "/dev/shm" in line])
        """,
        mounts="mount -t tmpfs -o size=16m tmpfs /dev/shm",
    )
    assert said.startswith("True /dev/shm has 0.02 GiB.")
    assert "--shm-size=1g" in said
