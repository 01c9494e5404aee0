"""What a script imports, read from its source, and what of that this machine lacks."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path


def missing(script: Path) -> list[str]:
    """The packages that `script`, or a file beside it that it imports, needs and that are absent.

    An import inside `try` with `except ImportError` is no need. Does not look into packages.
    """
    absent: set[str] = set()
    seen: set[Path] = set()
    todo = [script]
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in imported(ast.parse(path.read_bytes())):
            beside = script.parent / f"{name}.py"
            if beside.is_file():
                todo.append(beside)
            elif name not in sys.builtin_module_names and importlib.util.find_spec(name) is None:
                absent.add(name)
    return sorted(absent)


def imported(tree: ast.AST) -> Iterator[str]:
    """The top-level names of the modules that this code imports."""
    if isinstance(tree, ast.Try) and any(_catches_import_error(h) for h in tree.handlers):
        children: list[ast.AST] = [*tree.handlers, *tree.orelse, *tree.finalbody]
    else:
        children = list(ast.iter_child_nodes(tree))
    for node in children:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
        else:
            yield from imported(node)


def _catches_import_error(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    caught = {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)}
    return not caught.isdisjoint({"ImportError", "ModuleNotFoundError", "Exception"})
