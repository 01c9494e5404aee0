"""tools/site_pages.py: every notebook as a page that stands alone, with all its pictures."""

from __future__ import annotations

import re

import pytest

import site_pages as site


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    site.write(folder)
    return folder


PAGES = site.pages()
every_page = pytest.mark.parametrize("page", PAGES, ids=[page.address for page in PAGES])


def text(folder, page) -> str:
    return (folder / page.address).read_text(encoding="utf-8")


@every_page
def test_every_picture_of_a_notebook_is_on_its_page(built, page):
    outputs = [o for cell in page.notebook.cells for o in cell.get("outputs", [])]
    pictures = sum("image/png" in output.get("data", {}) for output in outputs)
    assert text(built, page).count('src="data:image/') >= pictures


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
            promise, minutes = page.headline
            assert promise and f"{minutes} min" in found
