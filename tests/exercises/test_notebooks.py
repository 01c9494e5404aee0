"""The exercise notebooks: one task in few words, one cell to fill in, one check, three hints."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

import derive
from ddp_lessons.checks import answers, exercise
from ddp_lessons.checks.grade import grade

ROOT = Path(__file__).resolve().parents[2]
KEYS = exercise.keys()
MOST_WORDS = 120


def notebook(folder: str, key: str) -> tuple[Path, nbformat.NotebookNode]:
    path = ROOT / folder / f"{key.partition('/')[0]}.ipynb"
    return path, nbformat.read(path, as_version=4)


def place(key: str) -> tuple[list[nbformat.NotebookNode], int]:
    """The cells of the exercise's notebook, and where the one to fill in stands."""
    cells = notebook("exercises", key)[1].cells
    return cells, next(n for n, cell in enumerate(cells) if derive.answers(cell) == key)


def task(key: str) -> str:
    """The words above the cell to fill in, back to the heading with the minutes."""
    cells, at = place(key)
    found = ""
    for cell in reversed(cells[:at]):
        if cell.cell_type == "markdown":
            found = f"{cell.source}\n\n{found}"
            if re.search(r"^\d+ min · ", cell.source, re.M):
                return found
    raise AssertionError(f"no line with the minutes above the cell of {key}")


@pytest.mark.parametrize("key", KEYS)
def test_an_exercise_as_handed_out_fails_politely(key: str):
    path, _ = notebook("exercises", key)
    verdict = grade(key, answers.from_notebook(key, path))
    assert verdict.mistake == "not_written"
    assert not any(held for _, held in verdict.requirements)


@pytest.mark.slow  # the solutions' own notebooks say so too, and are compared
@pytest.mark.parametrize("key", KEYS)
def test_the_solution_passes(key: str):
    path, _ = notebook("solutions", key)
    verdict = grade(key, answers.from_notebook(key, path))
    assert verdict.passed, repr(verdict)


@pytest.mark.parametrize("key", KEYS)
def test_the_task_is_short_and_says_its_minutes(key: str):
    text = re.sub(r"^#.*$|^\d+ min · .*$|\]\([^)]*\)", "", task(key), flags=re.M)
    assert len(re.findall(r"\S*\w\S*", text)) <= MOST_WORDS
    minutes, level = re.search(r"^(\d+) min · (\w+) · after \[lesson", task(key), re.M).groups()
    assert int(minutes) == exercise.find(key).minutes
    assert level in ("gentle", "moderate", "hard")


@pytest.mark.parametrize("key", KEYS)
def test_an_answers_cell_is_followed_by_its_check_and_three_hints(key: str):
    cells, at = place(key)
    assert derive.checks(cells[at + 1]) == key
    assert derive.STUB in cells[at].source
    hints = re.findall(r"<summary>Hint (\d)", cells[at + 2].source)
    assert hints == ["1", "2", "3"]


@pytest.mark.parametrize("key", KEYS)
def test_an_exercise_and_its_lesson_link_to_each_other(key: str):
    slug = key.partition("/")[0]
    lesson = notebook("notebooks", key)[1]
    prose = "\n".join(cell.source for cell in lesson.cells if cell.cell_type == "markdown")
    link = rf"\(\.\./exercises/{slug}\.ipynb\) · {exercise.find(key).minutes} min"
    assert re.search(link, prose)
    assert f"(../notebooks/{slug}.ipynb)" in task(key)


@pytest.mark.parametrize("key", KEYS)
def test_a_solution_explains(key: str):
    _, solution = notebook("solutions", key)
    cells = [derive.answers(cell) for cell in solution.cells]
    at = cells.index(key)
    after = next((n for n, other in enumerate(cells) if n > at and other), len(cells))
    prose = "\n".join(c.source for c in solution.cells[at:after] if c.cell_type == "markdown")
    assert re.search(r"^##+ Why it works", prose, re.M)
    assert re.search(r"^##+ It could also be", prose, re.M)
    pictures = [o for c in solution.cells[at:after] for o in c.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in pictures)


def test_every_exercise_has_a_source_and_every_source_an_exercise():
    slugs = {key.partition("/")[0] for key in KEYS}
    assert {path.stem for path in (ROOT / "solutions" / "source").glob("*.py")} == slugs
    for folder in ("exercises", "solutions"):
        assert {path.stem for path in (ROOT / folder).glob("*.ipynb")} == slugs
    cells = [cell for slug in sorted(slugs) for cell in notebook("exercises", slug)[1].cells]
    assert [key for cell in cells if (key := derive.answers(cell))] == KEYS
