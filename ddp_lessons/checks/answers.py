"""Where an answer is: the file that %%exercise wrote, a notebook's cell, or a file of its own."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

from ddp_lessons import folders

MAGIC = "%%exercise"
FOLDER = "answers"  # beside the notebook
_written: dict[str, Path] = {}  # what this process wrote, by name


def write(key: str, text: str) -> Path:
    """Keep an exercise's answer in answers/NN_slug/name.py. Returns the path, as put() does."""
    return put(f"{key}.py", text)


def put(name: str, text: str) -> Path:
    """Keep a file, whole or not at all, in answers/ of the current folder, or among this process's
    temporary files where that folder cannot be written to. Only then is the path absolute."""
    place = Path(FOLDER, name)
    try:
        _replace(place, text)
    except OSError:
        place = folders.session() / place
        _replace(place, text)
    _written[name] = place.resolve()
    return place


def last(name: str) -> Path | None:
    """The file of that name that this process wrote last, or an earlier one in this folder."""
    for place in (_written.get(name), Path(FOLDER, name)):
        if place and place.is_file():
            return place.resolve()
    return None


def _replace(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    new = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    try:
        new.write_text(text, encoding="utf-8")
        new.replace(place)
    finally:
        new.unlink(missing_ok=True)


def find(key: str, path: str | Path | None = None) -> Path:
    """The .py file of an answer. `path` is that file, or the notebook with its %%exercise cell;
    None stands for what this process's %%exercise wrote last, or an earlier one in this folder.

    Raises FileNotFoundError, in one sentence, if there is no answer.
    """
    if path is None:
        if place := last(f"{key}.py"):
            return place
        raise FileNotFoundError(
            f"there is no answer to {key} yet: run the cell that begins with {MAGIC} {key} first"
        )
    path = Path(path).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r}")
    return from_notebook(key, path) if path.suffix == ".ipynb" else path.resolve()


def from_notebook(key: str, path: Path) -> Path:
    """The last cell of a notebook that answers an exercise, written to a file."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path.name} is not a notebook") from None
    found = [text for text in texts if text.split()[:2] == [MAGIC, key]]
    if not found:
        raise FileNotFoundError(f"{path.name} has no cell that begins with {MAGIC} {key}")
    place = folders.cell_file().with_name(f"{key.partition('/')[2]}.py")
    head, _, body = found[-1].lstrip("\n").partition("\n")
    place.write_text(f"# {head}\n{body}", encoding="utf-8")
    return place
