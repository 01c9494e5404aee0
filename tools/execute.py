"""Run a notebook's cells in this interpreter's own kernel, and keep what has not changed."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ipykernel.kernelspec import RESOURCES, get_kernel_dict
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

TIMEOUT = 120  # seconds a cell
COLOURS = re.compile(r"\x1b\[[\d;]*m")
# What may differ in the HTML of two runs that say the same: drawings inside it, and numbers.
VARYING = re.compile(r"data:image/[^\"')]*|<svg.*?</svg>|\d+(\.\d+)?", re.DOTALL)


class CellFault(Exception):
    """A cell did what no committed output may show; `str()` has its source and the reason."""

    def __init__(self, number: int, cell: NotebookNode, what: str):
        code = "\n".join(f"    {line}" for line in cell.source.splitlines())
        super().__init__(f"cell {number}:\n{code}\n{COLOURS.sub('', what)}")


class OwnKernelManager(AsyncKernelManager):
    """Starts the kernel of the running interpreter, whatever kernelspecs this machine has."""

    @property
    def kernel_spec(self) -> KernelSpec:
        return KernelSpec(resource_dir=RESOURCES, **get_kernel_dict())


def execute(
    notebook: NotebookNode,
    folder: Path,
    timeout: int = TIMEOUT,
    after_cell: Callable[..., None] | None = None,
) -> None:
    """Run every code cell in `folder`, in place, and call `after_cell` after each.

    Raises CellFault for an error in a cell that is not tagged raises-exception, for a tagged cell
    that raises nothing, for output on stderr and for a cell that takes longer than `timeout`.
    """
    begun: list[int] = []
    with tempfile.TemporaryDirectory() as scratch:
        client = NotebookClient(
            notebook,
            timeout=timeout,
            kernel_manager_class=OwnKernelManager,
            resources={"metadata": {"path": str(folder)}},
            record_timing=False,
            store_widget_state=False,
            coalesce_streams=True,
            on_cell_execute=lambda cell, cell_index: begun.append(cell_index),
            on_cell_executed=after_cell,
        )
        # The maker's own IPython start-up files and history stay out of it.
        env = {**os.environ, "IPYTHONDIR": scratch, "JUPYTER_RUNTIME_DIR": scratch}
        log = Path(scratch, "kernel.log")
        try:
            with log.open("wb") as stderr:
                client.execute(env=env, stderr=stderr)
        except CellExecutionError:
            raise last_begun(notebook, begun, traceback(notebook.cells[begun[-1]])) from None
        except CellTimeoutError:
            what = f"still running after {timeout} seconds"
            raise last_begun(notebook, begun, what) from None
        except DeadKernelError:
            what = "the kernel died\n" + log.read_text(encoding="utf-8", errors="replace")
            raise last_begun(notebook, begun, what) from None
    for number, cell in code_cells(notebook):
        raised = [out.evalue for out in cell.outputs if out.output_type == "error"]
        if tagged(cell) and not raised:
            raise CellFault(number, cell, "is tagged raises-exception and raised nothing")
        errors = [out.text for out in cell.outputs if out.get("name") == "stderr"]
        if errors:
            raise CellFault(number, cell, "wrote on stderr:\n" + "".join(errors))


def code_cells(notebook: NotebookNode) -> list[tuple[int, NotebookNode]]:
    """The code cells, with their numbers among all cells, from 1."""
    return [(n, cell) for n, cell in enumerate(notebook.cells, 1) if cell.cell_type == "code"]


def tagged(cell: NotebookNode) -> bool:
    return "raises-exception" in cell.metadata.get("tags", [])


def last_begun(notebook: NotebookNode, begun: list[int], what: str) -> CellFault:
    """The fault of the cell that ended the run."""
    return CellFault(begun[-1] + 1, notebook.cells[begun[-1]], what)


def traceback(cell: NotebookNode) -> str:
    return "\n".join("\n".join(o.traceback) for o in cell.outputs if o.output_type == "error")


def keep_outputs(cell: NotebookNode, old: NotebookNode) -> bool:
    """Give `cell` the outputs of its older self if what a test compares is the same. True if that
    set aside a new picture or new numbers in a table.

    HTML that differs in more than its numbers is taken: a table's design has changed.
    """
    new = cell.outputs
    if compared(new) != compared(old.outputs) or tables(new) != tables(old.outputs):
        return False
    cell.outputs = old.outputs
    for output in cell.outputs:
        if "execution_count" in output:
            output.execution_count = cell.execution_count
    return new != cell.outputs


def compared(outputs: list[NotebookNode]) -> list[dict[str, Any]]:
    """The outputs without HTML, pictures and execution counts."""
    return [
        {key: value for key, value in output.items() if key not in ("data", "execution_count")}
        | {kind: value for kind, value in output.get("data", {}).items() if not is_rich(kind)}
        for output in outputs
    ]


def tables(outputs: list[NotebookNode]) -> list[str | None]:
    """Each output's HTML with its drawings and numbers struck out."""
    found = [output.get("data", {}).get("text/html") for output in outputs]
    return [html and VARYING.sub("#", html) for html in found]


def is_rich(kind: str) -> bool:
    return kind == "text/html" or kind.startswith("image/")
