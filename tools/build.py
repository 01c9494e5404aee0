"""Make the notebooks from their sources, or check that they still agree.

    python tools/build.py                         build every notebook
    python tools/build.py 00_start_here           build one
    python tools/build.py --check                 build nothing, compare sources and metadata
    python tools/build.py --nbgrader FOLDER       write the exercises for an instructor's nbgrader

A source is a py:percent file; its notebook is built with outputs. Cell ids last, and so do the
outputs of a cell whose text has not changed, so that a small edit is a small diff. A source in
solutions/source makes two notebooks: the solution, and the exercise, which is not executed.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat.reader
from jupytext.combine import combine_inputs_with_outputs
from nbformat import NotebookNode

import derive
import rules
from execute import CellFault, code_cells, execute, keep_outputs

ROOT = Path(__file__).resolve().parent.parent

METADATA = {
    "kernelspec": {
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "name": "python3",
    },
    "language_info": {"name": "python"},
}


@dataclass(frozen=True)
class Target:
    """A folder of sources and the folder of the notebooks that are made from them, by `derive`."""

    sources: str
    notebooks: str
    derive: Callable[[NotebookNode], NotebookNode] = lambda notebook: notebook
    executed: bool = True


TARGETS = (
    Target("notebooks/source", "notebooks"),
    Target("solutions/source", "solutions", derive.for_comparing),
    Target("solutions/source", "exercises", derive.for_reader, executed=False),
)


@dataclass(frozen=True)
class Lesson:
    """One source and its notebook; `name` is NN_slug. Either file may be missing."""

    name: str
    source: Path
    notebook: Path
    target: Target = TARGETS[0]

    def read(self) -> NotebookNode:
        """The notebook that the source stands for, without outputs. Raises ValueError, with a
        sentence for each fault, for what a source may not contain."""
        text = self.source.read_text(encoding="utf-8")
        found = rules.faults(text)
        notebook = rules.read(text)
        if self.target.sources == TARGETS[1].sources:
            found += derive.faults(notebook)
        if found:
            raise ValueError("\n".join(found))
        return self.target.derive(notebook)


def lessons(root: Path = ROOT) -> list[Lesson]:
    """Every lesson that has a source, a notebook or both, by target, then by name."""
    found = []
    for target in TARGETS:
        sources, notebooks = root / target.sources, root / target.notebooks
        files = [*sources.glob("[0-9]*.py"), *notebooks.glob("*.ipynb")]
        found += [
            Lesson(name, sources / f"{name}.py", notebooks / f"{name}.ipynb", target)
            for name in sorted({path.stem for path in files})
        ]
    return found


def build(lesson: Lesson, fresh: bool = False) -> str:
    """Execute a lesson and write its notebook; return what became of it, for the terminal.

    fresh: take every new output, also where only pictures and numbers in tables differ.
    Raises CellFault or, for what a source may not contain, ValueError. Writes nothing then.
    """
    source = lesson.read()
    began = time.monotonic()
    old = read_notebook(lesson.notebook) if lesson.notebook.exists() else None
    notebook = merge(source, old)
    lesson.notebook.parent.mkdir(parents=True, exist_ok=True)
    if lesson.target.executed:
        execute(notebook, lesson.notebook.parent)
    notebook.metadata = nbformat.from_dict(METADATA)
    kept = 0
    if old and not fresh and lesson.target.executed:
        before = {cell.id: cell for cell in old.cells if cell.cell_type == "code"}
        for _, cell in code_cells(notebook):
            if cell.id in before and before[cell.id].source == cell.source:
                kept += keep_outputs(cell, before[cell.id])
    nbformat.validate(notebook)
    new = nbformat.writes(notebook) + "\n"
    same = lesson.notebook.exists() and lesson.notebook.read_text(encoding="utf-8") == new
    if not same:
        lesson.notebook.write_text(new, encoding="utf-8")
    note = f", {kept} old pictures or tables kept (--fresh takes the new)" if kept else ""
    return f"{'unchanged' if same else 'written'} ({time.monotonic() - began:.0f} s){note}"


def read_notebook(path: Path) -> NotebookNode:
    # nbformat.read would mend what it finds, and so hide it.
    return nbformat.reader.reads(path.read_text(encoding="utf-8"))


def merge(source: NotebookNode, old: NotebookNode | None) -> NotebookNode:
    """The cells of `source` without outputs, each with the id of the old cell that it continues."""
    own = [
        {key: cell.metadata[key] for key in ("tags", "nbgrader") if key in cell.metadata}
        for cell in source.cells
    ]
    if old is not None and old.nbformat == 4:
        known = {cell.get("id") for cell in old.cells} - {None}
        source = combine_inputs_with_outputs(source, old, fmt="py:percent")
    else:
        known = set()
    taken = {cell.get("id") for cell in source.cells} & known
    for cell, metadata in zip(source.cells, own, strict=True):
        if cell.get("id") not in known:
            cell.id = new_id(cell, taken)
        cell.metadata = nbformat.from_dict(metadata)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    source.nbformat_minor = 5
    return source


def new_id(cell: NotebookNode, taken: set[str]) -> str:
    """An id for a new cell that is the same wherever the notebook is built first."""
    number = 0
    while True:
        text = f"{cell.cell_type} {number} {cell.source}"
        found = hashlib.sha256(text.encode()).hexdigest()[:8]
        if found not in taken:
            taken.add(found)
            return found
        number += 1


def check(lesson: Lesson) -> str | None:
    """The first thing that is wrong with a lesson, or None. Outputs are not compared."""
    if not lesson.source.exists():
        return "has no source. Write one, or delete the notebook"
    try:
        source = lesson.read()
    except ValueError as error:
        return "\n  ".join(["the source has what it may not have:", *str(error).splitlines()])
    if not lesson.notebook.exists():
        return "is missing"
    try:
        notebook = read_notebook(lesson.notebook)
    except ValueError as error:
        return f"is not a notebook: {str(error)[:60]}"
    if (notebook.nbformat, notebook.nbformat_minor) != (4, 5):
        return f"is nbformat {notebook.nbformat}.{notebook.nbformat_minor}, not 4.5"
    executed = lesson.target.executed
    return next(differences(merge(source, None), notebook, executed), None)


def differences(
    expected: NotebookNode, actual: NotebookNode, executed: bool = True
) -> Iterator[str]:
    """Where a notebook departs from its source, cells first."""
    for number, (want, have) in enumerate(zip(expected.cells, actual.cells, strict=False), 1):
        if want.cell_type != have.cell_type or want.source != have.source:
            old, new = have.source.splitlines(), want.source.splitlines()
            lines = difflib.unified_diff(old, new, "notebook", "source", n=0, lineterm="")
            yield "\n    ".join([f"cell {number} is not what the source says", *lines])
        if dict(want.metadata) != dict(have.metadata):
            yield f"cell {number} has the metadata {dict(have.metadata)}, not {dict(want.metadata)}"
    if len(expected.cells) != len(actual.cells):
        yield f"has {len(actual.cells)} cells, its source {len(expected.cells)}"
    if actual.metadata != METADATA:
        yield "the notebook's metadata is not the plain one"
    ids = [cell.get("id") for cell in actual.cells]
    if None in ids or len(set(ids)) < len(ids):
        yield "cell ids are missing or not unique"
    for position, (number, cell) in enumerate(code_cells(actual), 1):
        if not executed:
            if cell.outputs or cell.execution_count:
                yield f"cell {number} has been executed: an exercise is handed out without outputs"
            continue
        counts = [cell.execution_count]
        counts += [o.execution_count for o in cell.outputs if o.output_type == "execute_result"]
        if counts != [position] * len(counts):
            yield f"cell {number} was not executed in order: its count is {counts}, not {position}"


def command(names: Iterable[str]) -> str:
    """What to type, in the root of the project, to build these notebooks."""
    here = Path(sys.executable).parent
    own = f"{here.relative_to(ROOT).as_posix()}/" if here.is_relative_to(ROOT) else ""
    return " ".join([f"{own}python", "tools/build.py", *names])


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description="Make the notebooks from their sources.")
    parser.add_argument("names", nargs="*", metavar="NN_slug", help="which lessons (default: all)")
    parser.add_argument("--check", action="store_true", help="compare, build and write nothing")
    parser.add_argument("--fresh", action="store_true", help="take new pictures and tables too")
    parser.add_argument("--nbgrader", metavar="FOLDER", help="write the exercises with solutions")
    options = parser.parse_args(arguments)
    if options.nbgrader:
        try:
            write_for_nbgrader(root, Path(options.nbgrader))
        except ValueError as error:
            parser.error(str(error))
        return 0
    every = lessons(root)
    names = [Path(name).stem for name in options.names]
    if unknown := sorted(set(names) - {lesson.name for lesson in every}):
        parser.error(f"no lesson {unknown[0]}. There are: {', '.join(x.name for x in every)}")
    chosen = [lesson for lesson in every if not names or lesson.name in names]
    bad = []
    for lesson in chosen:
        shown = lesson.notebook.relative_to(root).as_posix()
        if options.check:
            what = check(lesson)
        else:
            print(f"{shown}: ", end="", flush=True)
            what = attempt(lesson, options.fresh)
        if what:
            bad.append(lesson)
            print(f"{shown}: {what}" if options.check else "failed\n" + what)
    mend = list(dict.fromkeys(lesson.name for lesson in bad if lesson.source.exists()))
    if mend:
        if options.check:
            print("\nIf you have only worked through the lesson, nothing is wrong.")
        print(f"To change the course, mend the source and build: {command(mend)}")
    elif not bad and options.check:
        agree = (
            "notebook agrees with its source"
            if len(chosen) == 1
            else "notebooks agree with their sources"
        )
        print(f"{len(chosen)} {agree}")
    return 1 if bad else 0


def write_for_nbgrader(root: Path, folder: Path) -> None:
    """Write each exercise, its solution between nbgrader's markers, as `nbgrader
    generate_assignment` takes it: folder/NN_slug.ipynb. Raises ValueError, and writes nothing, for
    a source with faults."""
    target = Target(TARGETS[1].sources, str(folder), derive.for_nbgrader, executed=False)
    made = {}
    for source in sorted((root / target.sources).glob("[0-9]*.py")):
        path = folder / f"{source.stem}.ipynb"
        made[path] = merge(Lesson(source.stem, source, path, target).read(), None)
        made[path].metadata = nbformat.from_dict(METADATA)
    folder.mkdir(parents=True, exist_ok=True)
    for path, notebook in made.items():
        path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")


def attempt(lesson: Lesson, fresh: bool) -> str | None:
    """Build a lesson, say so, and return what went wrong, if anything did."""
    if not lesson.source.exists():
        return f"{lesson.name} has no source"
    try:
        print(build(lesson, fresh))
    except (CellFault, ValueError) as error:
        return f"{lesson.name}, {error}"
    return None


if __name__ == "__main__":
    sys.exit(main())
