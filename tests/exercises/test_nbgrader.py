"""An instructor's nbgrader: a real course from our sources, real submissions, real scores.

nbgrader has an environment of its own, made here once: in .venv its pages would stand in the
JupyterLab of every reader.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import bank
import nbformat
import pytest

import build
import derive
from ddp_lessons.checks import exercise

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / "build" / "nbgrader"
KEYS = exercise.keys()
KEY = "04_collectives/all_gather"
SLUG = KEY.partition("/")[0]
MINUTES = exercise.find(KEY).minutes
COURSE = "exercises"  # the name of the one assignment


# It installs nbgrader, and runs four submissions.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def nbgrader() -> Path:
    """The folder of nbgrader's commands, in an environment that sees the packages of this one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = project["optional-dependencies"]["nbgrader"]
    here = sysconfig.get_path("purelib")
    made = PLACE / "installed"
    state = json.dumps([here, wanted, (ROOT / "constraints.txt").read_text(encoding="utf-8")])
    if not made.is_file() or made.read_text(encoding="utf-8") != state:
        subprocess.run(
            [sys.executable, "-m", "venv", "--clear", "--without-pip", PLACE], check=True
        )
        names = {"base": str(PLACE), "platbase": str(PLACE)}
        own = Path(sysconfig.get_path("purelib", "venv", names))
        (own / "course.pth").write_text(f"import site; site.addsitedir({here!r})\n")
        pip = [sys.executable, "-m", "pip", "--python", PLACE / "bin" / "python", "install"]
        options = ["--quiet", "--disable-pip-version-check", "-c", ROOT / "constraints.txt"]
        done = subprocess.run([*pip, *options, *wanted], capture_output=True, text=True)
        assert done.returncode == 0, f"nbgrader could not be installed:\n{done.stderr[-800:]}"
        made.write_text(state, encoding="utf-8")
    return PLACE / "bin"


@pytest.fixture(scope="module")
def course(nbgrader: Path, tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A course whose assignment is made, with a submission of each kind that has been graded."""
    made = Course(tmp_path_factory.mktemp("course"), nbgrader)
    assert build.main(["--nbgrader", str(made.root / "source" / COURSE)]) == 0
    made.run("generate_assignment", COURSE)
    wrong = next(one.path for one in bank.answers(KEY) if one.diagnosis == "one_buffer")
    made.submit("empty", made.released, {KEY: ""})
    made.submit("wrong", made.released, {KEY: wrong.read_text(encoding="utf-8")})
    made.submit("right", made.released, {KEY: solved(KEY)})
    made.submit("reader", ROOT / "exercises", {KEY: solved(KEY)})
    made.scores = made.autograde()
    return made


class Course:
    """A course of nbgrader's in a folder."""

    def __init__(self, root: Path, commands: Path):
        self.root, self._commands = root, commands
        self.scores: dict[str, dict[str, list[float]]] = {}
        (root / "nbgrader_config.py").write_text("get_config().Execute.timeout = 120\n")
        own = {
            # nbgrader starts alembic, which it expects on PATH
            "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "JUPYTER_CONFIG_DIR": str(root / "config"),
            "JUPYTER_DATA_DIR": str(root / "data"),
            "JUPYTER_PLATFORM_DIRS": "0",
        }
        self._env = {**os.environ, **own}

    def run(self, *command: str) -> str:
        done = subprocess.run(
            [self._commands / "nbgrader", *command],
            cwd=self.root,
            env=self._env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    @property
    def released(self) -> Path:
        return self.root / "release" / COURSE

    def submit(self, student: str, notebooks: Path, answers: dict[str, str]) -> None:
        """Hand in the notebooks of these answers, from a folder, with the answers filled in."""
        folder = self.root / "submitted" / student / COURSE
        folder.mkdir(parents=True)
        for slug in {key.partition("/")[0] for key in answers}:
            notebook = nbformat.read(notebooks / f"{slug}.ipynb", as_version=4)
            for cell in notebook.cells:
                if answers.get(key := derive.answers(cell)):
                    cell.source = f"%%exercise {key}\n{answers[key]}"
            nbformat.write(notebook, folder / f"{slug}.ipynb")

    def autograde(self, *options: str) -> dict[str, dict[str, list[float]]]:
        """Grade; then, from the gradebook, by student and check: the score and the most it can
        be."""
        self.run("autograde", COURSE, *options)
        command = [self._commands / "python", "-c", ASK, COURSE]
        done = subprocess.run(
            command, cwd=self.root, env=self._env, capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    def graded(self, student: str) -> str:
        """The text of the notebook that nbgrader has executed."""
        path = self.root / "autograded" / student / COURSE / f"{SLUG}.ipynb"
        return path.read_text(encoding="utf-8")


ASK = """
import json, sys
from nbgrader.api import Gradebook
with Gradebook("sqlite:///gradebook.db") as book:
    print(json.dumps({
        handed_in.student.id: {
            f"{one.name}/{grade.name}": [grade.score, grade.max_score]
            for one in handed_in.notebooks for grade in one.grades
        }
        for handed_in in book.assignment_submissions(sys.argv[1])
    }))
"""


def solved(key: str) -> str:
    """The solution's text, without the magic's line."""
    slug = key.partition("/")[0]
    cells = nbformat.read(ROOT / "solutions" / f"{slug}.ipynb", as_version=4).cells
    text = next(cell.source for cell in cells if derive.answers(cell) == key)
    return text.partition("\n")[2]


def check_of(key: str) -> str:
    slug, _, name = key.partition("/")
    return f"{slug}/check_{name}"


def test_what_is_released_is_worth_its_minutes_and_holds_no_answer(course: Course):
    released = {path.stem: path for path in course.released.glob("*.ipynb")}
    assert set(released) == {key.partition("/")[0] for key in KEYS}
    for key in KEYS:
        cells = nbformat.read(released[key.partition("/")[0]], as_version=4).cells
        cell = next(cell for cell in cells if derive.answers(cell) == key)
        assert "raise NotImplementedError" in cell.source
        assert derive.BEGIN not in cell.source
        check = next(cell for cell in cells if derive.checks(cell) == key)
        assert check.metadata.nbgrader.points == exercise.find(key).minutes
        assert check.metadata.nbgrader.locked


def test_an_empty_submission_gets_nothing_and_is_told_why(course: Course):
    assert course.scores["empty"][check_of(KEY)] == [0, MINUTES]
    assert "is not written yet" in course.graded("empty")


def test_a_wrong_submission_gets_nothing_and_is_told_why(course: Course):
    assert course.scores["wrong"][check_of(KEY)] == [0, MINUTES]
    assert exercise.find(KEY).mistakes["one_buffer"].partition(":")[0] in course.graded("wrong")


def test_a_right_submission_gets_all(course: Course):
    assert course.scores["right"][check_of(KEY)] == [MINUTES, MINUTES]


def test_a_readers_own_exercise_notebook_can_be_handed_in(course: Course):
    assert course.scores["reader"][check_of(KEY)] == [MINUTES, MINUTES]


def test_a_check_that_was_made_to_pass_is_put_back(course: Course):
    course.submit("clever", course.released, {KEY: ""})
    path = course.root / "submitted" / "clever" / COURSE / f"{SLUG}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    next(cell for cell in notebook.cells if derive.checks(cell) == KEY).source = "pass"
    nbformat.write(notebook, path)
    scores = course.autograde("--student", "clever")
    assert scores["clever"][check_of(KEY)] == [0, MINUTES]


def test_every_solution_gets_all(course: Course):
    course.submit("all", ROOT / "exercises", {key: solved(key) for key in KEYS})
    scores = course.autograde("--student", "all")
    assert scores["all"] == {check_of(key): [exercise.find(key).minutes] * 2 for key in KEYS}
