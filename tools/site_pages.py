"""Make web pages of the notebooks: static HTML with all pictures, no kernel, no script.

    python tools/site_pages.py [FOLDER]        default: build/site

One page for each lesson, exercise and solution, and an index with minutes and objectives. Each page
stands alone: it loads nothing.
"""

from __future__ import annotations

import base64
import html
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbconvert import HTMLExporter

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("notebooks", "exercises", "solutions")
KINDS = {"notebooks": "lesson", "exercises": "exercise", "solutions": "solution"}

CSS = (ROOT / "tools" / "site_pages.css").read_text(encoding="utf-8")

MINUTES = re.compile(r"^(\d+) min · ", re.M)
# nbconvert puts the alternative text first.
PICTURE = re.compile(
    r'"ddp-picture"><img (?:alt="[^"]*" )?src="data:image/svg\+xml;base64,([^"]+)"'
)
PHONE = 358  # pixels between the margins of its page
HEADLINE = re.compile(r"^You will (?P<promise>[^\n]+?)\.?\n\n(?P<minutes>\d+) min · ", re.M)


@dataclass(frozen=True)
class Page:
    """One notebook and the page that is made of it."""

    folder: str
    slug: str
    notebook: nbformat.NotebookNode

    @property
    def address(self) -> str:
        """Relative to the index."""
        return f"{self.folder}/{self.slug}.html"

    @property
    def title(self) -> str:
        return self.notebook.cells[0].source.partition("\n")[0].removeprefix("# ").strip()

    @property
    def promise(self) -> str:
        """What the reader of a lesson will do."""
        text = "\n\n".join(cell.source for cell in self.notebook.cells[:3])
        found = HEADLINE.search(text)
        return found["promise"] if found else ""

    @property
    def minutes(self) -> int:
        """Of a lesson, or of all exercises of a notebook."""
        words = [cell.source for cell in self.notebook.cells if cell.cell_type == "markdown"]
        found = [int(minutes) for text in words for minutes in MINUTES.findall(text)]
        return found[0] if self.folder == "notebooks" else sum(found)


def pages(root: Path = ROOT) -> list[Page]:
    """Every notebook, lessons first, in course order."""
    return [
        Page(folder, path.stem, nbformat.read(path, as_version=4))
        for folder in FOLDERS
        for path in sorted((root / folder).glob("[0-9]*.ipynb"))
    ]


def document(title: str, nav: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{CSS}</style></head>\n"
        f"<body>{nav}<main>{body}</main>{nav}</body></html>\n"
    )


def link(page: Page, words: str, rel: str = "") -> str:
    kind = f' rel="{rel}"' if rel else ""
    return f'<a href="../{page.address}"{kind}>{html.escape(words)}</a>'


def navigation(page: Page, every: Sequence[Page]) -> str:
    """Index, the neighbours in the same folder, and the same lesson's other pages."""
    row = [other for other in every if other.folder == page.folder]
    at = row.index(page)
    links = ['<a href="../index.html">All lessons</a>']
    if at > 0:
        links.append(link(row[at - 1], f"← {row[at - 1].title}", "prev"))
    if at + 1 < len(row):
        links.append(link(row[at + 1], f"{row[at + 1].title} →", "next"))
    for other in every:
        if other.slug == page.slug and other.folder != page.folder:
            links.append(link(other, KINDS[other.folder].capitalize()))
    return f"<nav>{''.join(links)}</nav>"


def body(page: Page, known: set[str], exporter: HTMLExporter) -> str:
    """The notebook as HTML; links to other notebooks lead to their pages."""
    text, _ = exporter.from_notebook_node(page.notebook)

    def led(match: re.Match) -> str:
        target = f"{(Path(page.folder) / match[1]).as_posix()}.html"
        parts: list[str] = []
        for part in target.split("/"):
            parts = parts[:-1] if part == ".." else [*parts, part]
        if "/".join(parts) not in known:
            raise ValueError(f"{page.address}: the link to {match[1]}.ipynb leads to no page")
        return f'href="{match[1]}.html"'

    text = re.sub(r'href="(?!https?:)([^"]+)\.ipynb"', led, text)
    return PICTURE.sub(
        lambda match: match[0].replace('"', '"wide ', 1 if wide(match[1]) else 0), text
    )


def wide(svg: str) -> bool:
    """Whether a picture, in base64, is wider than a phone."""
    points = re.search(rb'<svg[^>]* width="([\d.]+)pt"', base64.b64decode(svg))
    return points is not None and float(points[1]) * 4 / 3 > PHONE


def duration(minutes: int) -> str:
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours else f"{rest} min"


def index(every: Sequence[Page]) -> str:
    """The lessons, with minutes, objectives, exercises and solutions."""
    by_address = {page.address: page for page in every}
    lessons, exercises = (
        [page for page in every if page.folder == folder] for folder in ("notebooks", "exercises")
    )
    rows = []
    for page in lessons:
        facts = [f"{page.minutes} min"]
        told = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(page.promise))
        for folder in FOLDERS[1:]:
            other = by_address.get(f"{folder}/{page.slug}.html")
            if other:
                time = f", {other.minutes} min" if folder == "exercises" else ""
                facts.append(f'<a href="{other.address}">{KINDS[folder]}</a>{time}')
        rows.append(
            f'<li><h2><a href="{page.address}">{html.escape(page.title)}</a></h2>'
            f"<p>You will {told}.</p>"
            f'<p class="facts">{" · ".join(f"<span>{fact}</span>" for fact in facts)}</p></li>'
        )
    time, more = (duration(sum(page.minutes for page in some)) for some in (lessons, exercises))
    return (
        "<h1>DDP Lessons</h1><p>PyTorch DistributedDataParallel, taught by running it. These pages "
        "show each lesson as it ran; to run one yourself, take the notebooks.</p>"
        f"<p>{len(lessons)} lessons, {time}. Their exercises, {more}.</p>"
        f'<ol start="0" class="lessons">{"".join(rows)}</ol>'
    )


def write(folder: Path, root: Path = ROOT) -> list[Path]:
    """Write the site into `folder`; return its files. Raises ValueError for a link to nowhere."""
    every = pages(root)
    known = {page.address for page in every}
    made = [(folder / "index.html", document("DDP Lessons", "", index(every)))]
    exporter = HTMLExporter(template_name="basic")
    for page in every:
        text = document(page.title, navigation(page, every), body(page, known, exporter))
        made.append((folder / page.address, text))
    for path, text in made:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        for target in re.findall(r'href="\.\./((?:ddp_lessons|tests)/[^"#]+)', text):
            copy = folder / target
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes((root / target).read_bytes())
    return [path for path, _ in made]


def dead_links(folder: Path) -> Iterator[str]:
    """Each link of the site that leads to no file in it."""
    for path in sorted(folder.rglob("*.html")):
        for target in re.findall(r'(?:href|src)="([^"#]+)', path.read_text(encoding="utf-8")):
            if re.match(r"(https?:|data:|mailto:)", html.unescape(target)):
                continue
            if not (path.parent / target).is_file():
                yield f"{path.relative_to(folder).as_posix()}: {target}"


def main() -> int:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site"
    made = write(folder)
    dead = list(dead_links(folder))
    print(*dead, sep="\n", end="\n" * bool(dead))
    print(f"{len(made)} pages: {folder / 'index.html'}")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
