"""From the one source of an exercise and its solution: pure functions from text to text.

What a reader has to find stands between `### BEGIN SOLUTION` and `### END SOLUTION`, the markers
that nbgrader uses, too; a cell that is part of the solution alone is tagged "solution".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nbformat import NotebookNode, from_dict

from ddp_lessons.checks import exercise

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
STUB = "raise NotImplementedError  # your code"
SOLUTION = "solution"  # the tag


def faults(notebook: NotebookNode) -> Iterator[str]:
    """What is wrong with the regions and the keys of a source, a sentence each."""
    answered, roles = [], []
    for number, cell in enumerate(notebook.cells, 1):
        inside = False
        for line in cell.source.splitlines():
            if line.strip() == BEGIN and inside:
                yield f"cell {number}: a region begins inside another one"
            if line.strip() == END and not inside:
                yield f"cell {number}: {END!r} without {BEGIN!r}"
            inside = line.strip() == BEGIN or (inside and line.strip() != END)
        if inside:
            yield f"cell {number}: the region is not closed: {END!r} is missing"
        if key := answers(cell):
            answered.append(key)
            roles.append(f"answer {key}")
            if BEGIN not in cell.source:
                yield f"cell {number}: the answer to {key} has no solution region"
        elif BEGIN in cell.source:
            yield f"cell {number}: a solution region outside of an %%exercise cell"
        if key := checks(cell):
            roles.append(f"check {key}")
    known = exercise.keys()
    yield from (f"there is no exercise {key}" for key in answered if key not in known)
    if roles != [f"{role} {key}" for key in answered for role in ("answer", "check")]:
        yield f"each answer is followed by its own check, once, but here are: {', '.join(roles)}"


def answers(cell: NotebookNode) -> str:
    """The key of the exercise that a cell answers, else ""."""
    found = re.match(r"%%exercise (\S+)\n", cell.source) if cell.cell_type == "code" else None
    return found[1] if found else ""


def checks(cell: NotebookNode) -> str:
    """The key of the exercise that a cell checks and does nothing else, else ""."""
    found = re.fullmatch(r'check\("([^"]+)"\)', cell.source.strip())
    return found[1] if found and cell.cell_type == "code" else ""


def for_reader(notebook: NotebookNode) -> NotebookNode:
    """The exercise: without what is to be found."""
    notebook.cells = [c for c in notebook.cells if SOLUTION not in c.metadata.get("tags", [])]
    region = re.compile(rf"^([ \t]*){BEGIN}[ \t]*\n.*?^[ \t]*{END}[ \t]*$", re.M | re.S)
    for cell in notebook.cells:
        cell.source = region.sub(rf"\1{STUB}", cell.source)
    return graded(notebook)


def for_comparing(notebook: NotebookNode) -> NotebookNode:
    """The solution: everything, without the markers."""
    markers = re.compile(rf"^[ \t]*({BEGIN}|{END})[ \t]*$\n?", re.M)
    for cell in notebook.cells:
        cell.source = markers.sub("", cell.source).rstrip()
        cell.metadata.pop("tags", None)
    return graded(notebook)


def for_nbgrader(notebook: NotebookNode) -> NotebookNode:
    """What an instructor gives to nbgrader: the exercise, its regions still filled in."""
    notebook.cells = [c for c in notebook.cells if SOLUTION not in c.metadata.get("tags", [])]
    return graded(notebook)


def graded(notebook: NotebookNode) -> NotebookNode:
    """Note in the cells what nbgrader wants to know. A check is worth the exercise's minutes."""
    for cell in notebook.cells:
        if key := answers(cell):
            cell.metadata["nbgrader"] = _nbgrader(key, "answer", solution=True)
        elif key := checks(cell):
            points = exercise.find(key).minutes
            cell.metadata["nbgrader"] = _nbgrader(key, "check", grade=True, locked=True) | {
                "points": points
            }
    return notebook


def _nbgrader(key: str, role: str, **flags: bool) -> NotebookNode:
    plain = {"grade": False, "locked": False, "solution": False, "task": False}
    name = f"{role}_{key.partition('/')[2]}"
    return from_dict({**plain, **flags, "grade_id": name, "schema_version": 3})
