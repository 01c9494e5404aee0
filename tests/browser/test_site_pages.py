"""The pages that `make site` writes, on a phone and on a desk, in both colour schemes."""

from __future__ import annotations

import io

import pytest
from PIL import Image

import site_pages

WIDTHS = (390, 1250)
# Two with all that the others have.
ALWAYS = ("index.html", "notebooks/05_ring_all_reduce.html")
ADDRESSES = ["index.html", *(page.address for page in site_pages.pages())]
NOT_LOADED = "() => [...document.images].filter(i => !i.complete || !i.naturalWidth).length"


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    site_pages.write(folder)
    return folder


@pytest.fixture
def opened(browser, site):
    """A function that opens one of the pages; what the browser complains of fails the test."""
    pages, complaints = [], []

    def opened(address: str, width: int, scheme: str):
        page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        pages.append(page)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("requestfailed", lambda request: complaints.append(request.url))
        page.goto((site / address).as_uri())
        return page

    yield opened
    for page in pages:
        page.close()
    assert not complaints


def marked(address: str):
    slow = () if address in ALWAYS else pytest.mark.slow
    return pytest.param(address, id=address.removesuffix(".html"), marks=slow)


@pytest.mark.parametrize("address", [marked(address) for address in ADDRESSES])
def test_a_page_fits_its_window_and_shows_every_picture(address: str, opened):
    for width in WIDTHS:
        for scheme in ("light", "dark"):
            page = opened(address, width, scheme)
            # Folded parts are no reason to scroll sideways either.
            page.evaluate("() => document.querySelectorAll('details').forEach(d => d.open = true)")
            assert page.evaluate("() => document.documentElement.scrollWidth") <= width
            assert page.evaluate(NOT_LOADED) == 0


@pytest.mark.parametrize("scheme, paper", [("light", 255), ("dark", 17)])
def test_pictures_are_drawn_in_the_colours_of_the_page(scheme: str, paper: int, opened):
    page = opened("notebooks/05_ring_all_reduce.html", 1250, scheme)
    for picture in page.locator("main img").all():
        shot = Image.open(io.BytesIO(picture.screenshot())).convert("L")
        assert shot.getpixel((3, 3)) == paper


def test_words_in_a_picture_can_be_read_on_a_phone(opened):
    page = opened("notebooks/05_ring_all_reduce.html", 390, "light")
    for picture in page.locator("main img").all():
        drawn, natural = picture.evaluate("i => [i.clientWidth, i.naturalWidth]")
        assert drawn >= 0.65 * natural  # 10 point text


def test_a_picture_that_goes_on_beyond_a_phone_says_so(opened):
    page = opened("notebooks/05_ring_all_reduce.html", 390, "light")
    pictures = page.locator("main .ddp-picture").all()
    assert pictures
    for picture in pictures:
        hidden = picture.evaluate("f => f.scrollWidth > f.clientWidth")
        hint = picture.evaluate(
            "f => getComputedStyle(f.querySelector('figcaption'), '::before').content"
        )
        assert ("to the right" in hint) == hidden
