"""Make the pictures of README.md: lessons as they look in JupyterLab, in both themes.

    python tools/pictures.py [FOLDER]        default: docs

The lessons are opened in Chromium, and the cells that are seen are run on real ranks. Nothing in
them depends on time. Yet the browser sets a line a pixel lower now and then, so a file may be
written anew that nobody could tell from the old one.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import nbformat
from PIL import Image, ImageChops
from playwright.sync_api import Browser, FloatRect, Locator, Page

import lab

THEMES = ("light", "dark")
# So wide that a cell of it, without its margins, is as wide as the text of a README.
WINDOW = {"width": 950, "height": 1400}
SCALE = 2  # pixels for each of the page's
MARGIN = 28  # left of a cell's numbers
EDGE = 8  # below
WIDGET = "application/vnd.jupyter.widget-view+json"
TRIES = 3  # a very busy computer may not start three ranks within a lesson's limit
FIRST, NEXT, LAST = 2500, 2000, 4500  # milliseconds for a frame


DRAWN = """async () => {
    await Promise.all([...document.images].map(image => image.decode()));
    for (let n = 0; n < 2; n++) await new Promise(requestAnimationFrame);
}"""
# Bring a cell to the top of the window, `room` below the toolbar and on a whole pixel, which cells
# above that were not drawn before would move it from.
SCROLL = """(cell, room) => {
    const window = cell.closest('.jp-WindowedPanel-outer');
    window.style.overflowAnchor = 'none';
    cell.style.marginTop = 0;
    cell.scrollIntoView();
    window.scrollTop -= room;
    const { top } = cell.getBoundingClientRect();
    cell.style.marginTop = `${Math.ceil(top) - top}px`;
}"""
PASSIVE = "() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 0 }"

Frames = Callable[[], list[Image.Image]]


def said(cell: dict) -> list[str]:
    """The text of a cell's outputs, without widgets, which are in no notebook that was built."""
    return [
        output.get("evalue") or output.get("text") or output["data"]["text/plain"]
        for output in cell["outputs"]
        if WIDGET not in output.get("data", {})
    ]


class Lesson(lab.Notebook):
    """A lesson in a page, of which single cells are run."""

    def __init__(self, page: Page, address: str, slug: str):
        super().__init__(page, address, f"notebooks/{slug}.ipynb")
        self.built = nbformat.read(lab.ROOT / self.path, as_version=4).cells
        self.clear()

    def number(self, text: str) -> int:
        """The place of the one cell that holds `text`."""
        found = [n for n, cell in enumerate(self.cells()) if text in cell["source"]]
        if len(found) != 1:
            raise LookupError(f"{self.path}: {len(found)} cells, not one, hold {text!r}")
        return found[0]

    def cell(self, text: str) -> Locator:
        return self.page.locator(f'[data-windowed-list-index="{self.number(text)}"]')

    def run(self, *texts: str) -> None:
        """Run the cells that hold these, one after the other, until they say what was built."""
        for text in texts:
            number = self.number(text)
            for _ in range(TRIES):
                before = self.cells()[number]["execution_count"]
                self.run_cell(number)
                self.page.wait_for_function(
                    f"([n, old]) => ({lab.CELLS})()[n].execution_count !== old && ({lab.READY})()",
                    arg=[number, before],
                    timeout=lab.PATIENCE,
                )
                cell, built = self.cells()[number], self.built[number]
                if said(cell) == said(built) or cell["source"] != built["source"]:
                    break
            else:
                raise RuntimeError(f"{self.path} said {said(built)}, and now says {said(cell)}")
        self.page.evaluate(PASSIVE)  # no frame around the last cell

    def seen(self, first: Locator, last: Locator) -> Image.Image:
        """The page from the top of one cell to the bottom of another place, when all is drawn."""
        self.page.evaluate(DRAWN)
        for _ in range(20):
            first.evaluate(SCROLL, 5 * EDGE)
            self.page.evaluate(DRAWN)
            above, below = first.bounding_box(), last.bounding_box()
            if above["y"] == round(above["y"]):
                break
        window = self.page.locator(".jp-WindowedPanel-outer").bounding_box()
        top, bottom = round(above["y"]), round(below["y"] + below["height"]) + EDGE
        if top < window["y"] or bottom > window["y"] + window["height"]:
            raise RuntimeError(f"{self.path}: {top} to {bottom} is not all in sight")
        left, width = above["x"] + MARGIN, above["width"] - MARGIN
        clip = FloatRect(x=left, y=top, width=width, height=bottom - top)
        shot = self.page.screenshot(clip=clip, animations="disabled")
        return Image.open(io.BytesIO(shot)).convert("RGB")


def lesson(opened: Lesson) -> Frames:
    """A guess, what two ranks measured, and what their calls did."""
    run, view, question = "moved = launch(", "before_after(moved)", "> **Guess.** After `y ="
    number = opened.number(run)
    source = opened.cells()[number]["source"]
    opened.write(number, source.replace("guess = None", 'guess = "y"'))
    opened.run("compare, launch, show, views", run, view)
    return lambda: [opened.seen(opened.cell(question), opened.cell(view))]


def waits(opened: Lesson) -> Frames:
    """The report on three ranks that wait for each other, and its picture."""
    run, view = 'launch("05_ring_all_reduce/circle.py"', "views.waits("
    opened.run("compare, launch, show, views", "half = launch(", run, view)
    return lambda: [opened.seen(opened.cell(run), opened.cell(view))]


def ring(opened: Lesson) -> Frames:
    """The step player, moved on by an arrow key from its first moment to its last."""
    view = "views.ring(half)"
    opened.run("compare, launch, show, views", "half = launch(", view)
    cell = opened.cell(view)
    player = cell.locator(".widget-vbox")
    knob, caption = player.locator(".noUi-handle"), player.locator("figcaption")

    def moment() -> tuple[float, float]:
        now, last = (knob.get_attribute(f"aria-value{name}") for name in ("now", "max"))
        return float(now), float(last)

    def press(key: str) -> None:
        before = caption.inner_text()
        knob.press(key)
        opened.page.wait_for_function(
            "([player, before]) => player.querySelector('figcaption').innerText !== before",
            arg=[player.element_handle(), before],
        )

    def frames() -> list[Image.Image]:
        knob.focus()
        if moment()[0]:
            press("Home")
        found = [opened.seen(cell, player)]
        while moment()[0] < moment()[1]:
            press("ArrowRight")
            found.append(opened.seen(cell, player))
        return found

    return frames


def save(path: Path, frames: list[Image.Image]) -> None:
    """One frame as a PNG, more as a GIF, with few colours: these are drawings.

    A file that shows the same already stays as it is.
    """
    width, height = frames[0].size
    assert all(frame.size == (width, height) for frame in frames), [f.size for f in frames]
    tall = Image.new("RGB", (width, height * len(frames)))
    for n, frame in enumerate(frames):
        tall.paste(frame, (0, n * height))
    plain = tall.quantize(256, dither=Image.Dither.NONE)  # the same colours in each frame
    first, *rest = few = [
        plain.crop((0, n * height, width, (n + 1) * height)) for n in range(len(frames))
    ]
    if path.exists() and alike(path, few):
        return
    if rest:
        pauses = [FIRST, *[NEXT] * (len(rest) - 1), LAST]
        first.save(path, save_all=True, append_images=rest, duration=pauses, loop=0)
    else:
        first.save(path, optimize=True)


def alike(path: Path, frames: list[Image.Image]) -> bool:
    """Whether a file shows the same, but for the edges of letters."""
    with Image.open(path) as old:
        if (old.size, getattr(old, "n_frames", 1)) != (frames[0].size, len(frames)):
            return False
        for number, frame in enumerate(frames):
            old.seek(number)
            apart = ImageChops.difference(old.convert("RGB"), frame.convert("RGB")).convert("L")
            counts = apart.histogram()
            if sum(counts[64:]) or sum(counts[8:]) > 0.005 * frame.width * frame.height:
                return False
    return True


# What README.md calls each of them.
PICTURES = {
    "ring.gif": ("05_ring_all_reduce", ring),
    "lesson.png": ("04_collectives", lesson),
    "waits.png": ("05_ring_all_reduce", waits),
}


def names(picture: str) -> dict[str, str]:
    """The file for each theme."""
    stem, _, kind = picture.partition(".")
    return {"light": picture, "dark": f"{stem}_dark.{kind}"}


def make(folder: Path, browser: Browser, address: str) -> list[Path]:
    """Write every picture into `folder`; return the files. Lab serves the course at `address`."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for picture, (slug, prepare) in PICTURES.items():
        page = browser.new_page(viewport=WINDOW, device_scale_factor=SCALE)
        opened = Lesson(page, address, slug)
        frames = prepare(opened)
        for theme in THEMES:
            opened.theme(theme)
            made.append(folder / names(picture)[theme])
            save(made[-1], frames())
        page.evaluate("() => window.jupyterapp.serviceManager.sessions.shutdownAll()")
        page.close()
    return made


def main() -> int:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else lab.ROOT / "docs"
    if not lab.CHROMIUM:
        print(lab.MISSING)
        return 1
    with (
        tempfile.TemporaryDirectory() as scratch,
        lab.browser() as browser,
        lab.served(Path(scratch)) as address,
    ):
        for path in make(folder, browser, address):
            print(f"{path}: {path.stat().st_size // 1000} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
