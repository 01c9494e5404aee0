"""What the source of a lesson may not contain: pure functions from text to sentences.

Most of these would pass `pytest --nbval` in silence, or fail it for a reason that has nothing to do
with the lesson.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

import jupytext
from IPython.core.inputtransformer2 import TransformerManager
from jupytext.cell_metadata import _JUPYTEXT_CELL_METADATA
from jupytext.magics import is_magic
from jupytext.stringparser import StringParser
from nbformat import NotebookNode

# What jupytext notes about blank lines and markers, which a notebook has no use for.
LAYOUT = set(_JUPYTEXT_CELL_METADATA)
MAGICS = ("ranks", "exercise")
BARE = re.compile(r"\s*%{1,2}[A-Za-z]")
BANNED = {
    "clear_output": "leaves an output that cannot be compared",
    "update_display": "leaves an output that cannot be compared",
    "interact": "draws into an Output widget, which is never saved; use a widget with a value",
    "interactive": "draws into an Output widget, which is never saved; use a widget with a value",
}


def read(text: str) -> NotebookNode:
    """The notebook, without outputs, that a py:percent source stands for."""
    notebook = jupytext.reads(text, fmt="py:percent")
    for cell in notebook.cells:
        for key in LAYOUT & set(cell.metadata):
            del cell.metadata[key]
    return notebook


def faults(text: str) -> list[str]:
    """What is wrong with a source, a sentence each; an empty list if nothing is."""
    bare = [
        f"line {number}: write '# {line.strip()}', as a comment: a bare magic is no Python, and "
        "one is enough for jupytext to leave the commented ones as comments"
        for number, line in unquoted(text.splitlines())
        if BARE.match(line)
    ]
    if bare:
        return bare
    found = []
    outputs: set[str] = set()
    for number, cell in enumerate(read(text).cells, 1):
        start = cell.source.strip().partition("\n")[0]
        found += [f"cell {number} ({start[:40]}): {what}" for what in cell_faults(cell, outputs)]
    return found


def cell_faults(cell: NotebookNode, outputs: set[str]) -> Iterator[str]:
    """The faults of one cell. `outputs` collects the names that hold an Output widget."""
    for key in sorted(set(cell.metadata) - {"tags"}):
        yield f"metadata {key!r}: a cell has tags and nothing else"
    if cell.cell_type != "code":
        return
    if not cell.source.strip():
        yield "an empty code cell"
        return
    head, _, body = cell.source.partition("\n")
    if not head.startswith(tuple(f"%%{name}" for name in MAGICS)):
        body = cell.source
    elif any(line.lstrip().startswith("%%") for line in body.splitlines()):
        yield "a second cell magic"
    yield from code_faults(body, outputs, "raises-exception" in cell.metadata.get("tags", []))


def code_faults(code: str, outputs: set[str], may_raise: bool) -> Iterator[str]:
    """The faults of Python code, which may be IPython's dialect of it."""
    plain = TransformerManager().transform_cell(code)
    yield from dialect_faults(plain)
    for _, line in unquoted(code.splitlines()):
        # "# copy the weights" has become "copy the weights": jupytext knows a few shell commands.
        if is_magic(line, "python") and line.strip()[0].isalpha() and "!" not in line:
            yield f"jupytext takes {line.strip()!r} for a command: word it otherwise"
    try:
        tree = ast.parse(plain)
    except SyntaxError as error:
        if not may_raise:
            yield f"line {error.lineno} does not parse: {error.msg}"
        return
    if last_token(code) == ";":
        yield "a trailing ';' hides the result, so nothing is compared"
    for node in ast.walk(tree):
        name = getattr(node, "id", getattr(node, "attr", ""))
        if name in BANNED:
            yield f"{name}() {BANNED[name]}"
        if isinstance(node, ast.Call) and any(k.arg == "display_id" for k in node.keywords):
            yield f"display_id= {BANNED['update_display']}"
        if isinstance(node, ast.Assign) and is_output_widget(node.value, outputs):
            outputs |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        if isinstance(node, ast.With):
            yield from (
                "'with Output():' captures what nbval then misses; give the widget a value"
                for item in node.items
                if is_output_widget(item.context_expr, outputs)
            )


def dialect_faults(plain: str) -> Iterator[str]:
    """What IPython would do beyond Python, seen from the Python that it makes of a cell."""
    for method, name in re.findall(
        r"get_ipython\(\)\.(system|getoutput|run_line_magic|run_cell_magic)\('([^' ]*)", plain
    ):
        if method in ("system", "getoutput"):
            yield f"'!{name}': a command that fails passes in silence; use launch()"
        elif name.startswith("pinfo"):
            yield "a line that ends with '?' opens help, even in a comment: reword it"
        else:
            sign = "%" if method == "run_line_magic" else "%%"
            known = " and ".join(f"%%{magic}" for magic in MAGICS)
            yield f"'{sign}{name}': {known} only, in the first line"


def unquoted(lines: list[str]) -> Iterator[tuple[int, str]]:
    """The lines, numbered from 1, that do not start inside a string."""
    parser = StringParser("python")
    for number, line in enumerate(lines, 1):
        if not parser.is_quoted():
            yield number, line
        parser.read_line(line)


def last_token(code: str) -> str:
    """The last token that is neither a comment nor white space."""
    skip = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.DEDENT, tokenize.ENDMARKER)
    try:
        tokens = [
            token.string
            for token in tokenize.generate_tokens(io.StringIO(code).readline)
            if token.type not in skip
        ]
    except (tokenize.TokenError, SyntaxError):
        return ""
    return tokens[-1] if tokens else ""


def called_name(call: ast.Call) -> str:
    function = call.func
    return getattr(function, "id", getattr(function, "attr", ""))


def is_output_widget(node: ast.expr, outputs: set[str]) -> bool:
    if isinstance(node, ast.Call):
        return called_name(node) == "Output"
    return isinstance(node, ast.Name) and node.id in outputs
