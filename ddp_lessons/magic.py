"""%%ranks: run a cell's code on real ranks. %%exercise: keep it as the answer to an exercise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from IPython import get_ipython
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from ddp_lessons import folders

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from ddp_lessons.run import Run


@magic_arguments()
@argument("-n", "--world-size", type=int, default=2, help="number of ranks (default 2)")
@argument("-o", "--out", default=None, help="the variable that takes the Run")
@argument("--nnodes", type=int, default=1, help="machines to act as; needs --engine torchrun")
@argument("--device", default="auto", help="auto, cuda or cpu")
@argument("--engine", default="forkserver", help="forkserver, torchrun, python or slurm")
@argument("--timeout", type=float, default=60, help="seconds for the whole run (default 60)")
def ranks(line: str, cell: str) -> Run:
    """Run this cell's code as a script of its own on several ranks.

    The ranks are new processes: they see none of this notebook's variables.
    """
    from ddp_lessons.launcher import launch
    from ddp_lessons.run import WorkerError

    options = parse_argstring(ranks, line)
    path = folders.cell_file()
    # The magic's own line stays, as a comment: line numbers in reports are the cell's.
    path.write_text(f"# %%ranks {line}\n{cell}", encoding="utf-8")
    names = get_ipython().user_ns
    try:
        run = launch(
            path,
            options.world_size,
            nnodes=options.nnodes,
            device=options.device,
            engine=options.engine,
            timeout=options.timeout,
        )
    except (WorkerError, KeyboardInterrupt) as error:
        if options.out and hasattr(error, "run"):
            names[options.out] = error.run
        raise
    if options.out:
        names[options.out] = run
    return run


@magic_arguments()
@argument("key", help="the exercise, NN_slug/name")
def exercise(line: str, cell: str) -> None:
    """Write this cell to a file, as the answer that check() then runs. Nothing runs here."""
    from ddp_lessons import arguments
    from ddp_lessons.checks import answers
    from ddp_lessons.checks.exercise import find
    from ddp_lessons.run import say

    key = parse_argstring(exercise, line).key
    try:
        find(key)
        # The magic's own line stays, as a comment: line numbers in verdicts are the cell's.
        path = answers.write(key, f"# %%exercise {line}\n{cell}")
        arguments.check_syntax(path)
    except (ValueError, OSError) as error:
        raise say(error) from None
    where = (
        "a temporary file, for this folder takes none" if path.is_absolute() else path.as_posix()
    )
    print(f"written to {where}")


def register(shell: InteractiveShell) -> None:
    """Make %%ranks and %%exercise known to this shell."""
    shell.register_magic_function(ranks, "cell", "ranks")
    shell.register_magic_function(exercise, "cell", "exercise")
