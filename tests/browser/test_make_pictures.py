"""`make pictures` takes every picture of README.md anew."""

from __future__ import annotations

import pytest
from PIL import Image, ImageChops

import lab
import pictures

pytestmark = pytest.mark.slow


def test_the_pictures_of_the_readme_are_made_from_the_lessons(browser, address, tmp_path):
    made = pictures.make(tmp_path, browser, address)
    there = lab.ROOT / "docs"
    assert sorted(path.name for path in made) == sorted(path.name for path in there.iterdir())
    for path in made:
        with Image.open(path) as new, Image.open(there / path.name) as old:
            # Other fonts move a word by some pixels; another lesson looks different.
            assert getattr(new, "n_frames", 1) == getattr(old, "n_frames", 1)
            assert abs(new.width - old.width) < 20 and abs(new.height - old.height) < 60
            small = [picture.convert("L").resize((80, 50)) for picture in (new, old)]
        difference = ImageChops.difference(*small)
        assert sum(difference.histogram()[60:]) < 80, path.name
