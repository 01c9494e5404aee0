"""tools/site_pages.py: every notebook as a page that stands alone, with all its pictures."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter

import pytest
from tags import parsed

import site_pages as site
from ddp_lessons import course


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    site.write(folder)
    return folder


PAGES = site.pages()
every_page = pytest.mark.parametrize("page", PAGES, ids=[page.address for page in PAGES])


def text(folder, page) -> str:
    return (folder / page.address).read_text(encoding="utf-8")


def shown(page) -> list[tuple[str, dict]]:
    """The source of each cell that drew a picture, and the forms of that output."""
    return [
        (cell.source, output.data)
        for cell in page.notebook.cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]


def sentences(found: str) -> Counter[str]:
    """The alternative texts of the pictures that an HTML text holds."""
    images = [attributes for tag, attributes in parsed(found).found if tag == "img"]
    return Counter(one["alt"] for one in images if one["src"].startswith("data:image/"))


def drawn(page) -> Counter[str]:
    """The sentences of all pictures of a notebook."""
    return Counter(forms["text/plain"] for _, forms in shown(page))


@every_page
def test_every_picture_of_a_notebook_is_on_its_page_with_its_sentence(built, page):
    found = text(built, page)
    assert drawn(page) <= sentences(found)
    assert all(sentence in parsed(found).text for sentence in drawn(page))


def test_each_widget_of_a_lesson_is_on_its_page_as_a_still_picture(built):
    calls = ("views.ring(", "views.sampler(")
    found = [
        (page.slug, call)
        for page in PAGES
        for source, _ in shown(page)
        for call in calls
        if page.folder == "notebooks" and call in source
    ]
    assert found == [("05_ring_all_reduce", calls[0]), ("07_distributed_sampler", calls[1])]
    for page in PAGES:
        assert "widget-view" not in str(page.notebook.cells)


@pytest.mark.parametrize(
    "some", [slice(5, 6), pytest.param(slice(None), marks=pytest.mark.slow)], ids=["one", "all"]
)
@pytest.mark.parametrize("folder", ["notebooks", "solutions"])
def test_plain_nbconvert_keeps_every_picture(folder: str, some: slice, tmp_path):
    converted = [page for page in PAGES if page.folder == folder][some]
    paths = [str(site.ROOT / folder / f"{page.slug}.ipynb") for page in converted]
    command = [sys.executable, "-m", "nbconvert", "--to", "html", "--output-dir", str(tmp_path)]
    done = subprocess.run([*command, *paths], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for page in converted:
        found = (tmp_path / f"{page.slug}.html").read_text(encoding="utf-8")
        assert drawn(page) and drawn(page) <= sentences(found)


@every_page
def test_a_page_loads_nothing_and_fits_a_phone(built, page):
    found = text(built, page)
    assert "<script" not in found and "<link" not in found
    assert not re.search(r'src="(?!data:)', found)
    assert '<meta name="viewport" content="width=device-width' in found


@every_page
def test_a_page_leads_to_the_next_one_and_back(built, page):
    row = [other for other in PAGES if other.folder == page.folder]
    if page is not row[-1]:
        following = row[row.index(page) + 1]
        assert f'href="../{following.address}" rel="next"' in text(built, page)
        assert f'href="../{page.address}" rel="prev"' in text(built, following)


def test_no_link_of_the_site_is_dead(built):
    assert list(site.dead_links(built)) == []


def test_a_dead_link_is_found(built, tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html">b</a>', encoding="utf-8")
    assert list(site.dead_links(tmp_path)) == ["a.html: b.html"]


def test_the_index_names_each_lesson_with_its_minutes_and_promise(built):
    found = (built / "index.html").read_text(encoding="utf-8")
    for page in PAGES:
        assert f'href="{page.address}"' in found
        if page.folder == "notebooks":
            assert page.promise and f"<span>{page.minutes} min</span>" in found


def test_the_index_says_how_long_the_course_takes(built):
    found = (built / "index.html").read_text(encoding="utf-8")
    assert f"{len(course.LESSONS)} lessons" in found
    assert site.duration(sum(lesson.minutes for lesson in course.LESSONS)) in found
    assert [site.duration(minutes) for minutes in (59, 60, 125)] == [
        "59 min",
        "1 h 0 min",
        "2 h 5 min",
    ]
