"""The pictures of README.md: there, not too large, and told in words that are true."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from PIL import Image
from tags import parsed

ROOT = Path(__file__).resolve().parents[2]
SHOWN = parsed((ROOT / "README.md").read_text(encoding="utf-8")).found
LIGHT = [attributes for tag, attributes in SHOWN if tag == "img"]
DARK = [attributes for tag, attributes in SHOWN if tag == "source"]
FILES = [*(one["src"] for one in LIGHT), *(one["srcset"] for one in DARK)]
KILOBYTES = {".gif": 600, ".png": 200}
# What each picture says below its drawing, as the notebook that it is taken of has it. The player's
# last caption is in no notebook that was built.
SAYS = {
    "docs/lesson.png": ("04_collectives", "before_after(moved)"),
    "docs/waits.png": ("05_ring_all_reduce", "views.waits("),
}


def test_the_readme_shows_every_picture_in_both_themes():
    assert len(LIGHT) == 3
    assert [one["srcset"] for one in DARK] == [
        re.sub(r"(\.\w+)$", r"_dark\1", one["src"]) for one in LIGHT
    ]
    assert all(one["media"] == "(prefers-color-scheme: dark)" for one in DARK)
    assert sorted(FILES) == sorted(f"docs/{path.name}" for path in (ROOT / "docs").iterdir())


@pytest.mark.parametrize("name", FILES)
def test_a_picture_of_the_readme_is_sharp_and_small(name: str):
    path = ROOT / name
    assert path.stat().st_size < KILOBYTES[path.suffix] * 1000
    with Image.open(path) as picture:
        assert 1600 <= picture.width <= 1700  # twice the text of a README
        assert 700 <= picture.height <= 1400


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".gif")])
def test_each_step_of_the_animation_can_be_read(name: str):
    with Image.open(ROOT / name) as picture:
        assert picture.n_frames == 7 and picture.info["loop"] == 0
        seen = set()
        for number in range(picture.n_frames):
            picture.seek(number)
            assert picture.info["duration"] >= 1500
            seen.add(picture.convert("RGB").tobytes())
    assert len(seen) == 7


@pytest.mark.parametrize("one", LIGHT, ids=lambda one: one["src"])
def test_the_alternative_text_says_what_is_seen(one: dict):
    assert 100 < len(one["alt"]) < 500
    if one["src"] in SAYS:
        slug, source = SAYS[one["src"]]
        notebook = nbformat.read(ROOT / "notebooks" / f"{slug}.ipynb", as_version=4)
        [cell] = [cell for cell in notebook.cells if source in cell.source]
        assert cell.outputs[-1].data["text/plain"] in one["alt"]


def drawn(colour: str, size: int = 40) -> Image.Image:
    picture = Image.new("RGB", (200, 100), "white")
    picture.paste(colour, (10, 10, 10 + size, 10 + size))
    return picture


def test_a_picture_is_written_anew_where_it_shows_something_else_and_only_there(tmp_path: Path):
    pytest.importorskip("playwright")
    import pictures

    path = tmp_path / "a.gif"
    first = [drawn("black"), drawn("navy")]

    def is_new(*frames: Image.Image) -> bool:
        path.unlink(missing_ok=True)
        pictures.save(path, first)
        before = path.read_bytes()
        pictures.save(path, list(frames))
        return path.read_bytes() != before

    softer = first[0].copy()
    softer.putpixel((10, 10), (40, 40, 40))  # the edge of a letter
    assert not is_new(*first)
    assert not is_new(softer, first[1])
    assert is_new(first[0], drawn("red"))
    assert is_new(first[0], drawn("navy", 41))
    assert is_new(first[0])
