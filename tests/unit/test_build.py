"""tools/build.py: small edits are small diffs, and nothing untestable gets in."""

from __future__ import annotations

import difflib
import json
from pathlib import Path

import jupytext
import pytest

import build
import execute
import rules

SOURCE = """\
# %% [markdown]
# # Average gradients
#
# Prose may say `!ls`, %%time and clear_output().

# %%
import time


class Timed:
    def __repr__(self):
        return "mean 1.5"

    def _repr_html_(self):
        return f"<b>mean 1.5</b> {time.monotonic()} s"


# %%
# the gradients of ranks 0 and 1
guess = None
print("rank", end=" ")
print(0)

# %%
Timed()

# %% tags=["raises-exception"]
raise ValueError("rank 1, line 3")

# %% [markdown]
# The mean is not the sum.
"""
NAME = "06_gradient_averaging"
RANKS = '# %%\n# %%ranks -n 2 -o run\nprint("x")\n'


def write(root: Path, text: str, name: str = NAME) -> Path:
    source = root / "notebooks" / "source" / f"{name}.py"
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text(text, encoding="utf-8")
    return root / "notebooks" / f"{name}.ipynb"


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The notebook of SOURCE, built once."""
    root = tmp_path_factory.mktemp("course")
    notebook = write(root, SOURCE)
    assert build.main([], root) == 0
    return notebook.read_text(encoding="utf-8")


@pytest.fixture
def course(tmp_path: Path, first: str) -> Path:
    """A folder with SOURCE and its notebook."""
    write(tmp_path, SOURCE).write_text(first, encoding="utf-8")
    return tmp_path


def changed_lines(old: str, new: str) -> list[str]:
    diff = difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm="")
    return [line for line in diff if line[:1] in "+-" and line[:3] not in ("+++", "---")]


def cells(text: str) -> list[dict]:
    return json.loads(text)["cells"]


# What is built


def test_the_notebook_holds_what_the_source_says_and_nothing_personal(first: str):
    notebook = json.loads(first)
    assert notebook["metadata"] == build.METADATA
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert [cell["cell_type"] for cell in cells(first)] == ["markdown", *["code"] * 4, "markdown"]
    assert [c["execution_count"] for c in cells(first) if c["cell_type"] == "code"] == [1, 2, 3, 4]
    assert [cell["metadata"] for cell in cells(first) if cell["metadata"]] == [
        {"tags": ["raises-exception"]}
    ]
    assert cells(first)[2]["outputs"] == [
        {"name": "stdout", "output_type": "stream", "text": ["rank 0\n"]}
    ]


def test_the_cells_read_back_as_the_source(first: str):
    have = ["".join(cell["source"]) for cell in cells(first)]
    assert have == [cell.source for cell in rules.read(SOURCE).cells]


def test_a_commented_magic_becomes_a_magic():
    assert rules.read(RANKS).cells[0].source == '%%ranks -n 2 -o run\nprint("x")'


def test_building_again_changes_nothing(course: Path, first: str, capsys):
    assert build.main([NAME], course) == 0
    assert "unchanged" in capsys.readouterr().out
    assert (course / "notebooks" / f"{NAME}.ipynb").read_text(encoding="utf-8") == first


def test_a_character_in_prose_is_a_diff_of_one_line(course: Path, first: str):
    notebook = write(course, SOURCE.replace("not the sum.", "not the sum!"))
    assert build.main([], course) == 0
    changed = changed_lines(first, notebook.read_text(encoding="utf-8"))
    assert [line.strip() for line in changed] == [
        '-    "The mean is not the sum."',
        '+    "The mean is not the sum!"',
    ]


def test_cells_keep_their_ids_beside_new_and_edited_ones():
    old = build.merge(rules.read(SOURCE), None)
    text = SOURCE.replace("print(0)", "print(0)\n\n# %%\nguess").replace("# # Average", "# # Mean")
    new = build.merge(rules.read(text), old)
    ids = [cell.id for cell in old.cells]
    assert [cell.id for cell in new.cells] == [*ids[:3], new.cells[3].id, *ids[3:]]
    assert new.cells[3].id not in ids


def test_ids_are_the_same_on_every_machine_and_unique():
    twice = SOURCE + "\n# %%\nTimed()\n\n# %%\nTimed()\n"
    one, two = (build.merge(rules.read(twice), None) for _ in range(2))
    ids = [cell.id for cell in one.cells]
    assert ids == [cell.id for cell in two.cells]
    assert len(set(ids)) == len(ids)


def test_fresh_takes_what_differs_only_in_html(course: Path, first: str):
    assert build.main(["--fresh"], course) == 0
    new = (course / "notebooks" / f"{NAME}.ipynb").read_text(encoding="utf-8")
    changed = changed_lines(first, new)
    assert len(changed) == 2
    assert all("<b>mean 1.5</b>" in line for line in changed)


def output(**data: str) -> execute.NotebookNode:
    names = {"html": "text/html", "png": "image/png", "text": "text/plain"}
    shown = {names[key]: value for key, value in data.items()}
    return build.nbformat.from_dict(
        {"output_type": "display_data", "data": shown, "metadata": {}},
    )


@pytest.mark.parametrize(
    ("new", "kept"),
    [
        (output(text="mean 1.5", html="<b>1.5</b> 0.2 s", png="b"), True),
        (output(text="mean 1.5", html="<b>1.5</b> 0.1 s <img src='data:image/x,B+/'>"), False),
        (output(text="mean 1.6", html="<b>1.5</b> 0.1 s", png="a"), False),
        (output(text="mean 1.5", html="<i>1.5</i> 0.1 s", png="a"), False),
        (output(text="mean 1.5", png="a"), False),
    ],
    ids=["other numbers and picture", "one more picture", "other text", "other table", "no table"],
)
def test_an_old_output_stays_while_its_text_and_its_tables_shape_do(new, kept: bool):
    def cell(shown):
        return build.nbformat.from_dict({"outputs": [shown], "execution_count": 3})

    old = output(text="mean 1.5", html="<b>1.5</b> 0.1 s", png="a")
    now = cell(new)
    assert execute.keep_outputs(now, cell(old)) is kept
    assert now.outputs == [old if kept else new]


def test_a_picture_inside_html_is_a_picture():
    def cell(picture: str):
        shown = output(text="late", html=f"<figure>{picture}</figure>")
        return build.nbformat.from_dict({"outputs": [shown], "execution_count": 3})

    image = '<img src="data:image/svg+xml;base64,PHN2{}">'
    for drawn in (image, "<svg><path d='M {}'/></svg>"):
        now = cell(drawn.format("A+/=" * 9))
        assert execute.keep_outputs(now, cell(drawn.format("B")))
        assert now == cell(drawn.format("B"))


# What stops a build


def build_fails(root: Path, code: str, capsys) -> str:
    notebook = write(root, f"# %% [markdown]\n# # T\n\n{code}")
    assert build.main([NAME], root) == 1
    assert not notebook.exists()
    return capsys.readouterr().out


def test_an_error_names_the_notebook_the_cell_and_the_reason(tmp_path: Path, capsys):
    said = build_fails(tmp_path, "# %%\nmean = 3\nmean / 0\n", capsys)
    assert f"{NAME}, cell 2:\n    mean = 3\n    mean / 0\n" in said
    assert "ZeroDivisionError: division by zero" in said
    assert "\x1b" not in said


def test_output_on_stderr_stops_the_build(tmp_path: Path, capsys):
    said = build_fails(tmp_path, "# %%\nimport warnings\nwarnings.warn('old')\n", capsys)
    assert "cell 2" in said
    assert "wrote on stderr" in said
    assert "old" in said


def test_a_tagged_cell_that_raises_nothing_stops_the_build(tmp_path: Path, capsys):
    said = build_fails(tmp_path, '# %% tags=["raises-exception"]\nx = 1\n', capsys)
    assert "raised nothing" in said


def test_a_cell_that_never_ends_is_named(tmp_path: Path):
    notebook = rules.read("# %%\nx = 1\n\n# %%\nimport time\ntime.sleep(600)\n")
    with pytest.raises(execute.CellFault, match=r"(?s)cell 2.*time.sleep.*after 1 seconds"):
        execute.execute(notebook, tmp_path, timeout=1)


def test_a_cell_that_kills_the_kernel_is_named(tmp_path: Path):
    notebook = rules.read("# %%\nx = 1\n\n# %%\nimport os\nos.kill(os.getpid(), 9)\n")
    with pytest.raises(execute.CellFault, match=r"(?s)cell 2.*os.kill.*the kernel died"):
        execute.execute(notebook, tmp_path)


def test_the_kernel_is_this_interpreters_and_starts_in_the_notebooks_folder(tmp_path: Path):
    notebook = rules.read("# %%\nimport os, sys\nprint(sys.executable)\nprint(os.getcwd())\n")
    execute.execute(notebook, tmp_path)
    said = notebook.cells[0].outputs[0].text.splitlines()
    assert said == [execute.get_kernel_dict()["argv"][0], str(tmp_path.resolve())]


# What a source may not contain

REFUSED = {
    "%time x": "write '# %time x', as a comment",
    "%%ranks -n 2\nprint(1)": "write '# %%ranks -n 2', as a comment",
    "# %%time\nx": "%%ranks and %%exercise only",
    "# %%writefile a.py\nx = 1": "%%ranks and %%exercise only",
    "# %matplotlib inline": "%%ranks and %%exercise only",
    "x = 1\n# %%ranks -n 2\nprint(1)": "in the first line",
    "!torchrun a.py": "passes in silence",
    "# !torchrun a.py": "passes in silence",
    "files = !ls": "passes in silence",
    "# %%ranks -n 2\n!ls": "passes in silence",
    "run?": "opens help",
    "# why?\nx": "opens help",
    "# copy the weights\nx = 1": "jupytext takes 'copy the weights' for a command",
    "from IPython import display\ndisplay.clear_output()": "clear_output()",
    "h.update_display(1)": "update_display()",
    "display(x, display_id='a')": "display_id=",
    "with Output():\n    print(1)": "with Output():",
    "out = widgets.Output()\nwith out:\n    print(1)": "with Output():",
    "@interact(n=3)\ndef f(n): pass": "Output widget",
    "plot();": "trailing ';'",
    "plot();  # quietly": "trailing ';'",
    "def f(:": "does not parse",
    "# %%": "empty code cell",
}


@pytest.mark.parametrize("code", REFUSED)
def test_a_source_is_refused(code: str):
    found = rules.faults(f"# %%\nx = 1\n\n# %%\n{code}\n")
    assert found
    assert REFUSED[code] in found[0]


def test_metadata_other_than_tags_is_refused():
    assert "metadata 'scrolled'" in rules.faults("# %% scrolled=true\nx = 1\n")[0]


@pytest.mark.parametrize(
    "code",
    [
        "x = 1; y = 2",
        "# %%ranks -n 2\nimport os\n\nprint(os.environ['RANK'])",
        "text = '''\n%time x\n!ls\n'''",
        "# the cat is a comment, is it not? yes",
        "mean = 7 % 4",
        "with open(path) as out:\n    out.read()",
    ],
)
def test_plain_code_is_accepted(code: str):
    assert rules.faults(f"# %%\nx = 1\n\n# %%\n{code}\n") == []


def test_one_bare_magic_makes_jupytext_guess_that_the_others_are_comments():
    # The reason for the rule: when jupytext guesses otherwise, the rule may go.
    cells = jupytext.reads(RANKS + "\n# %%\n%time x\n", fmt="py").cells
    assert cells[0].source.startswith("# %%ranks")
    assert jupytext.reads(RANKS, fmt="py").cells[0].source.startswith("%%ranks")


# --check


def check_fails(root: Path, capsys) -> str:
    assert build.main(["--check"], root) == 1
    said = capsys.readouterr().out
    assert f"notebooks/{NAME}.ipynb" in said
    assert f"python tools/build.py {NAME}" in said
    return said


def edit(root: Path, change) -> None:
    """Apply `change` to the parsed notebook, as an editor would that saves it."""
    path = root / "notebooks" / f"{NAME}.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    change(notebook)
    path.write_text(json.dumps(notebook), encoding="utf-8")


def test_check_passes_and_writes_nothing(course: Path, first: str, capsys):
    assert build.main(["--check"], course) == 0
    assert "1 notebook agrees with its source" in capsys.readouterr().out
    assert (course / "notebooks" / f"{NAME}.ipynb").read_text(encoding="utf-8") == first


def test_check_does_not_look_at_outputs(course: Path):
    def change(notebook):
        notebook["cells"][3]["outputs"][0]["data"] = {"text/plain": ["mean 7"]}

    edit(course, change)
    assert build.main(["--check"], course) == 0


DRIFT = {
    "a word": (lambda nb: nb["cells"][0]["source"].append("more"), "cell 1 is not"),
    "code": (lambda nb: nb["cells"][2]["source"].append("\nx"), "cell 3 is not"),
    "a kind": (lambda nb: nb["cells"][5].update(cell_type="raw"), "cell 6 is not"),
    "one more cell": (lambda nb: nb["cells"].append(dict(nb["cells"][0], id="a")), "has 7 cells"),
    "one less cell": (lambda nb: nb["cells"].pop(), "has 5 cells"),
    "a tag": (lambda nb: nb["cells"][4].update(metadata={}), "cell 5 has the metadata"),
    "a fold": (lambda nb: nb["cells"][1]["metadata"].update(collapsed=True), "'collapsed'"),
    "a kernel": (lambda nb: nb["metadata"]["kernelspec"].update(name="mine"), "metadata"),
    "widget state": (lambda nb: nb["metadata"].update(widgets={}), "metadata"),
    "no ids": (lambda nb: nb["cells"][1].pop("id"), "cell ids"),
    "equal ids": (lambda nb: nb["cells"][1].update(id=nb["cells"][2]["id"]), "cell ids"),
    "an old format": (lambda nb: nb.update(nbformat_minor=4), "4.4"),
    "never executed": (lambda nb: nb["cells"][1].update(execution_count=None), "executed"),
    "twice executed": (lambda nb: nb["cells"][4].update(execution_count=9), "executed"),
    "an older output": (lambda nb: nb["cells"][3]["outputs"][0].update(execution_count=8), "8"),
}


@pytest.mark.parametrize("drift", DRIFT)
def test_check_finds(course: Path, drift: str, capsys):
    change, said = DRIFT[drift]
    edit(course, change)
    assert said in check_fails(course, capsys)


def test_check_shows_the_lines_that_differ(course: Path, capsys):
    write(course, SOURCE.replace("print(0)", "print(1)"))
    said = check_fails(course, capsys)
    assert "-print(0)" in said
    assert "+print(1)" in said


def test_check_finds_a_missing_notebook(tmp_path: Path, capsys):
    write(tmp_path, SOURCE)
    assert "is missing" in check_fails(tmp_path, capsys)


def test_check_finds_a_notebook_that_is_none(course: Path, capsys):
    (course / "notebooks" / f"{NAME}.ipynb").write_text("<<<<<<< ours\n", encoding="utf-8")
    assert "is not a notebook" in check_fails(course, capsys)


def test_check_finds_a_notebook_without_a_source(course: Path, capsys):
    (course / "notebooks" / "source" / f"{NAME}.py").unlink()
    assert build.main(["--check"], course) == 1
    said = capsys.readouterr().out
    assert "has no source" in said
    assert "tools/build.py" not in said


def test_check_names_what_a_source_may_not_contain(course: Path, capsys):
    write(course, SOURCE + "\n# %%\n!ls\n")
    assert "passes in silence" in check_fails(course, capsys)


def test_an_unknown_lesson_is_an_error_that_lists_the_known(course: Path, capsys):
    with pytest.raises(SystemExit):
        build.main(["99_nothing"], course)
    assert NAME in capsys.readouterr().err
