"""tools/derive.py: one source makes the exercise, the solution and what nbgrader takes."""

from __future__ import annotations

import jupytext
import nbformat
import pytest

import build
import derive
import rules
from ddp_lessons.checks import exercise

KEY = "04_collectives/all_gather"
SOURCE = f"""\
# %% [markdown]
# # Exercise

# %%
from ddp_lessons import check

# %%
# %%exercise {KEY}
import torch


def helper(n):
    return n


def all_gather(x):
    \"\"\"Every rank's x.\"\"\"
    if helper(1):
        ### BEGIN SOLUTION
        parts = [x]

        return parts
        ### END SOLUTION

# %%
check("{KEY}")

# %% [markdown]
# <details><summary>Hint 1</summary></details>

# %% [markdown] tags=["solution"]
# ## Why it works

# %% tags=["solution"]
check("{KEY}").runs
"""
EXERCISE = f"""\
%%exercise {KEY}
import torch


def helper(n):
    return n


def all_gather(x):
    \"\"\"Every rank's x.\"\"\"
    if helper(1):
        raise NotImplementedError  # your code"""
SOLUTION = EXERCISE.replace(
    "raise NotImplementedError  # your code", "parts = [x]\n\n        return parts"
)


def read(text: str = SOURCE) -> nbformat.NotebookNode:
    return rules.read(text)


def with_answer(*lines: str, check: str = f'check("{KEY}")') -> nbformat.NotebookNode:
    """A source whose cell to fill in has these lines."""
    source = "\n".join([f"%%exercise {KEY}", *lines])
    cells = [nbformat.v4.new_code_cell(source)]
    cells += [nbformat.v4.new_code_cell(check)] if check else []
    return nbformat.v4.new_notebook(cells=cells)


def faults(*lines: str, **more: str) -> list[str]:
    return list(derive.faults(with_answer(*lines, **more)))


def test_the_exercise_lacks_the_answer_and_what_is_the_solutions_alone():
    made = derive.for_reader(read())
    assert [cell.cell_type for cell in made.cells] == [
        *("markdown", "code", "code", "code", "markdown")
    ]
    assert made.cells[2].source == EXERCISE
    text = nbformat.writes(made)
    assert "parts" not in text and "Why it works" not in text and "SOLUTION" not in text
    compile(made.cells[2].source.partition("\n")[2], "exercise", "exec")


def test_the_solution_has_everything_but_the_markers():
    made = derive.for_comparing(read())
    assert len(made.cells) == 7
    assert made.cells[2].source == SOLUTION
    assert "SOLUTION" not in nbformat.writes(made)
    assert all("tags" not in cell.metadata for cell in made.cells)


def test_nbgrader_gets_the_answer_between_its_markers():
    made = derive.for_nbgrader(read())
    assert len(made.cells) == 5
    begin, end = (made.cells[2].source.index(mark) for mark in (derive.BEGIN, derive.END))
    assert "return parts" in made.cells[2].source[begin:end]


def test_what_is_between_the_markers_alone_differs_between_exercise_and_solution():
    ours = derive.for_reader(read()).cells[2].source
    assert ours.replace(derive.STUB, "parts = [x]\n\n        return parts") == SOLUTION


def test_each_of_several_regions_becomes_a_stub():
    region = [derive.BEGIN, "    return 1", derive.END]
    lines = ["def a():", *(f"    {x.strip()}" for x in region)]
    lines += ["def b():", *(f"\t{x.strip()}" for x in region)]
    made = derive.for_reader(with_answer(*lines))
    assert made.cells[0].source.splitlines()[1:] == [
        "def a():",
        f"    {derive.STUB}",
        "def b():",
        f"\t{derive.STUB}",
    ]


def test_spaces_behind_a_marker_leak_no_answer():
    notebook = with_answer(f"{derive.BEGIN}  ", "found = 1", f"{derive.END}\t")
    assert not list(derive.faults(notebook))
    assert "found" not in derive.for_reader(notebook).cells[0].source
    notebook = with_answer(f"{derive.BEGIN}  ", "found = 1", f"{derive.END}\t")
    assert derive.for_comparing(notebook).cells[0].source == f"%%exercise {KEY}\nfound = 1"


def test_a_filled_in_stub_is_the_solution_again(tmp_path):
    """The exercise, written by the build and read back, has the cells of the source."""
    notebook = build.merge(derive.for_reader(read()), None)
    path = tmp_path / "exercise.ipynb"
    nbformat.write(notebook, path)
    nbformat.validate(back := build.read_notebook(path))
    assert [cell.source for cell in back.cells] == [
        cell.source for cell in derive.for_reader(read()).cells
    ]
    text = jupytext.writes(back, "py:percent")
    assert derive.answers(rules.read(text).cells[2]) == KEY


def test_cells_carry_what_nbgrader_wants_to_know():
    answer, check = (derive.for_reader(read()).cells[n].metadata.nbgrader for n in (2, 3))
    assert (answer.grade_id, check.grade_id) == ("answer_all_gather", "check_all_gather")
    assert answer.solution and not answer.locked and not answer.grade
    assert check.grade and check.locked and not check.solution
    assert check.points == exercise.find(KEY).minutes
    for derived in (derive.for_comparing, derive.for_nbgrader):
        assert derived(read()).cells[3].metadata.nbgrader == check
    others = [cell.metadata for cell in derive.for_reader(read()).cells if cell.cell_type != "code"]
    assert not any("nbgrader" in metadata for metadata in others)


def test_a_sound_source_has_no_faults():
    assert list(derive.faults(read())) == []


REGION = (derive.BEGIN, "pass", derive.END)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ((derive.BEGIN, "pass"), "cell 1: the region is not closed: '### END SOLUTION' is missing"),
        (("pass", derive.END), "cell 1: '### END SOLUTION' without '### BEGIN SOLUTION'"),
        ((derive.BEGIN, *REGION), "cell 1: a region begins inside another one"),
        ((*REGION, derive.END), "cell 1: '### END SOLUTION' without '### BEGIN SOLUTION'"),
        (("pass",), f"cell 1: the answer to {KEY} has no solution region"),
    ],
)
def test_a_region_that_is_not_whole_is_named(lines: tuple[str, ...], said: str):
    assert said in faults(*lines)


@pytest.mark.parametrize(
    "almost",
    ["## BEGIN SOLUTION", "###BEGIN SOLUTION", "### begin solution", "### BEGIN SOLUTION here"],
)
def test_a_marker_that_is_misspelt_is_no_marker_and_is_named(almost: str):
    assert faults(almost, "pass", derive.END)


def test_a_region_outside_of_an_answer_is_named():
    notebook = with_answer(*REGION)
    notebook.cells.append(nbformat.v4.new_code_cell("\n".join(REGION)))
    assert list(derive.faults(notebook)) == [
        "cell 3: a solution region outside of an %%exercise cell"
    ]


def test_an_answer_without_its_check_is_named():
    (said,) = faults(*REGION, check="")
    assert said == f"each answer is followed by its own check, once, but here are: answer {KEY}"
    assert faults(*REGION, check='check("04_collectives/other")')
    assert faults(*REGION, check=f'x = check("{KEY}")')  # a locked cell does nothing else


def test_a_check_above_its_answer_is_named():
    notebook = with_answer(*REGION)
    notebook.cells.reverse()
    assert list(derive.faults(notebook))


def test_a_key_that_no_exercise_has_is_named():
    notebook = with_answer(*REGION)
    for cell in notebook.cells:
        cell.source = cell.source.replace(KEY, "04_collectives/other")
    assert "there is no exercise 04_collectives/other" in list(derive.faults(notebook))


def test_a_build_refuses_a_source_with_faults_and_writes_nothing(tmp_path, capsys):
    source = tmp_path / "solutions" / "source" / "04_collectives.py"
    source.parent.mkdir(parents=True)
    source.write_text(SOURCE.replace(f"        {derive.END}\n", ""), encoding="utf-8")
    assert build.main(["04_collectives"], tmp_path) == 1
    assert "the region is not closed" in capsys.readouterr().out
    assert list(tmp_path.rglob("*.ipynb")) == []
    assert build.main(["--check"], tmp_path) == 1
    assert capsys.readouterr().out.endswith("tools/build.py 04_collectives\n")
    with pytest.raises(SystemExit):
        build.main(["--nbgrader", str(tmp_path / "out")], tmp_path)
    assert "the region is not closed" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_exercises_for_nbgrader_are_notebooks_with_the_answers(tmp_path):
    source = tmp_path / "solutions" / "source" / "04_collectives.py"
    source.parent.mkdir(parents=True)
    source.write_text(SOURCE, encoding="utf-8")
    assert build.main(["--nbgrader", str(tmp_path / "out")], tmp_path) == 0
    (path,) = (tmp_path / "out").iterdir()
    assert path.name == "04_collectives.ipynb"
    nbformat.validate(notebook := build.read_notebook(path))
    assert derive.BEGIN in notebook.cells[2].source
    assert notebook.metadata == build.METADATA
