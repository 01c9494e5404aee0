"""Every committed notebook was executed, keeps to the template, and agrees with the README."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import limits
import nbformat
import pytest
from nbformat import NotebookNode

from ddp_lessons import course

ROOT = Path(__file__).resolve().parents[2]
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
NOTEBOOKS = [*LESSONS, *sorted((ROOT / "solutions").glob("*.ipynb"))]
READ = {path: nbformat.read(path, as_version=4) for path in NOTEBOOKS}

ALL = [
    limits.executed,
    limits.quiet,
    limits.any_machine,
    limits.comparable,
    limits.lists,
    limits.tone,
]
TEMPLATE = [
    limits.headings,
    limits.promises,
    limits.length,
    limits.cell_sizes,
    limits.minutes_hold,
    limits.guesses,
]


def name(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").as_posix()


def every(paths: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", [pytest.param(path, id=name(path)) for path in paths])


def rules(functions: list[Callable]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("rule", functions, ids=lambda function: function.__name__)


def expect_none(where: str, found: list[str]) -> None:
    if found:
        pytest.fail("\n  ".join([f"{where}:", *found]), pytrace=False)


def test_the_course_has_lessons():
    assert LESSONS


def test_every_lesson_has_a_source_and_every_source_a_lesson():
    for folder in ("notebooks", "solutions"):
        sources = {path.stem for path in (ROOT / folder / "source").glob("[0-9]*.py")}
        assert sources == {path.stem for path in (ROOT / folder).glob("*.ipynb")}


@rules(ALL)
@every(NOTEBOOKS)
def test_every_notebook_is_executed_and_portable(path: Path, rule: Callable):
    expect_none(name(path), rule(READ[path]))


@rules(TEMPLATE)
@every(LESSONS)
def test_every_lesson_keeps_to_the_template(path: Path, rule: Callable):
    expect_none(name(path), rule(READ[path]))


@every([path for path in LESSONS if path.stem[:2] >= "02"])
def test_lessons_from_02_on_open_with_recall(path: Path):
    expect_none(name(path), limits.recall(READ[path]))


@every(LESSONS)
def test_every_lesson_asks_its_questions_before_and_after(path: Path):
    expect_none(name(path), limits.asks(READ[path], path.stem))


@every(NOTEBOOKS)
def test_every_link_leads_somewhere(path: Path):
    text = "\n".join(limits.markdown(READ[path]))
    expect_none(name(path), limits.links(text, path.parent, ROOT))


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "WORKSHOP.md"])
def test_every_link_of_the_front_pages_leads_somewhere(page: str):
    expect_none(page, limits.links((ROOT / page).read_text(encoding="utf-8"), ROOT, ROOT))


def plain(promise: str) -> str:
    """A promise without its frame and mark-up."""
    words = re.sub(r"[*_`]", "", promise).strip().rstrip(".")
    return words.removeprefix("You will ")


def row(path: Path, notebook: NotebookNode) -> tuple[str, str, str, str]:
    match = limits.headline(notebook)
    assert match, f"{name(path)} has no headline"
    return limits.title(notebook), name(path), match["minutes"], plain(match["promise"])


def test_the_table_in_the_readme_says_what_the_lessons_say():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    cells = re.findall(
        r"^\| *\d\d *\| *\[([^]]+)\]\((notebooks/[^)]+)\.ipynb\) *\| *(\d+)[^|]*\| *(.+?) *\|$",
        text,
        re.M,
    )
    table = [(head, link, minutes, plain(promise)) for head, link, minutes, promise in cells]
    assert table == [row(path, READ[path]) for path in LESSONS]


def test_the_courses_own_table_says_what_the_lessons_say():
    told = [(lesson.slug, lesson.title, str(lesson.minutes)) for lesson in course.LESSONS]
    rows = [row(path, READ[path]) for path in LESSONS]
    assert told == [(link.partition("/")[2], head, minutes) for head, link, minutes, _ in rows]


def breaks() -> list:
    """Each report that a lesson shows and that names a line, with the answer folded below it."""
    found = []
    for path in LESSONS:
        cells = READ[path].cells
        for number, cell in enumerate(cells):
            errors = [o for o in cell.get("outputs", []) if o.output_type == "error"]
            if errors and re.search(r"line \d", errors[0].evalue):
                below = [c.source for c in cells[number:] if "<details>" in c.source]
                found.append(pytest.param(errors[0].evalue, below[0], id=f"{path.stem}-{number}"))
    return found


@pytest.mark.parametrize(("report", "answer"), breaks())
def test_the_folded_answer_names_the_ranks_and_lines_of_the_report(report: str, answer: str):
    first = report.partition("\n")[0]
    lines, ranks = re.findall(r"line (\d+)", first), re.findall(r"ranks? (\d+)", first)
    # How a rank was killed says no line; where the others stood does.
    lines = lines or re.findall(r"line (\d+)", report)
    assert lines and ranks
    for line in lines:
        assert f"line {line}" in answer
    for rank in ranks:
        assert re.search(rf"[Rr]anks? {rank}\b", answer)
