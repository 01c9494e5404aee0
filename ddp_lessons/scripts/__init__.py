"""The scripts that the ranks run, one idea a file, and how their names are looked up."""

from __future__ import annotations

import difflib
from pathlib import Path

HERE = Path(__file__).parent


def find(script: str | Path) -> Path:
    """The file for a path, or for a name such as "00_start_here/hello.py" in this folder.

    A file in the current folder comes first. Raises FileNotFoundError, naming the nearest scripts,
    and TypeError if `script` is no path at all (a function, say).
    """
    if callable(script):
        name = getattr(script, "__name__", "this function")
        raise TypeError(
            f"launch() starts new processes, and they cannot see {name}() from this notebook. "
            "Put the code that every rank should run in a cell that begins with %%ranks -n 2, "
            "or in a .py file."
        )
    if not isinstance(script, str | Path):
        raise TypeError(f"launch() wants a script's path or name, not {type(script).__name__}")
    for path in (Path(script).expanduser(), HERE / script):
        if path.is_file():
            return path.resolve()
    near = nearest(str(script))
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    raise FileNotFoundError(
        f"no script {str(script)!r} in this folder or among the course's scripts.{hint}"
    )


def nearest(script: str) -> list[str]:
    """Up to three scripts, of this package or of the current folder, whose name is close."""
    names = {p.relative_to(HERE).as_posix(): p.name for p in sorted(HERE.glob("[0-9]*/*.py"))}
    names |= {p.name: p.name for p in sorted(Path().glob("*.py"))}
    near = difflib.get_close_matches(script, names, n=3, cutoff=0.8)
    # A reader who mistypes the name often leaves out the folder too.
    files = difflib.get_close_matches(Path(script).name, set(names.values()), n=3, cutoff=0.7)
    near += sorted((n for n in names if names[n] in files), key=lambda n: files.index(names[n]))
    return list(dict.fromkeys(near))[:3]
