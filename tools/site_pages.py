"""Make web pages of the notebooks: static HTML with all pictures, no kernel, no script.

    python tools/site_pages.py [FOLDER]        default: build/site

One page for each lesson, exercise and solution, and an index with minutes and objectives. Each page
stands alone: it loads nothing.
"""

from __future__ import annotations

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

# The notebooks' own colours, which pictures and tables ask for by these names.
LIGHT = """
--jp-content-font-color1:#1b1c1d;--jp-content-font-color2:#5c6166;--jp-border-color2:#c8ccd0;
--jp-mirror-editor-keyword-color:#00720a;--jp-mirror-editor-string-color:#a22222;
--jp-mirror-editor-comment-color:#3a6f6f;--jp-mirror-editor-number-color:#00720a;
--page:#ffffff;--code:#f5f6f7;--link:#0b5cad;--error:#b00020"""
DARK = """
--jp-content-font-color1:#ececec;--jp-content-font-color2:#a9aeb4;--jp-border-color2:#4a4f55;
--jp-mirror-editor-keyword-color:#6cc070;--jp-mirror-editor-string-color:#f0908d;
--jp-mirror-editor-comment-color:#8fb8b8;--jp-mirror-editor-number-color:#6cc070;
--page:#111111;--code:#1c1d1f;--link:#7db8f5;--error:#ff8a80"""
LOOK = """
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--jp-content-font-color1);line-height:1.55;
font-family:system-ui,sans-serif;font-size:16px}
main,nav{max-width:54rem;margin:0 auto;padding:0 1rem}
nav{display:flex;flex-wrap:wrap;gap:.3rem 1.5rem;padding-top:.8rem;padding-bottom:.8rem}
a{color:var(--link)}
h1,h2,h3{line-height:1.25}
img,svg{max-width:100%;height:auto}
pre{overflow-x:auto;margin:0;font-size:.85rem;line-height:1.4}
code{font-size:.9em;overflow-wrap:anywhere}
pre code{overflow-wrap:normal}
.input_area,.rendered_html pre{background:var(--code);padding:.6rem .8rem;border-radius:4px;
margin:.8rem 0 .3rem;overflow-x:auto}
.output{overflow-x:auto;margin:.3rem 0 1rem}
.output_error pre,.output_subarea pre{white-space:pre-wrap;overflow-wrap:anywhere}
.output_error{border-left:3px solid var(--error);padding-left:.8rem}
.prompt,.anchor-link{display:none}
blockquote{margin:1rem 0;padding:.1rem 1rem;border-left:3px solid var(--link)}
table{border-collapse:collapse;display:block;overflow-x:auto}
th,td{padding:.3rem .8rem;border-bottom:1px solid var(--jp-border-color2);text-align:left;
vertical-align:top}
figure{margin:0}
li{margin-bottom:.6rem}
summary{cursor:pointer}
.highlight{background:none}
.k,.kn,.kc,.kd,.ow{color:var(--jp-mirror-editor-keyword-color)}
.s1,.s2,.sd,.sa,.si{color:var(--jp-mirror-editor-string-color)}
.c1,.ch{color:var(--jp-mirror-editor-comment-color)}
.mi,.mf{color:var(--jp-mirror-editor-number-color)}
"""
CSS = f":root{{{LIGHT}}}@media(prefers-color-scheme:dark){{:root{{{DARK}}}}}{LOOK}"

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
    def headline(self) -> tuple[str, str]:
        """The promise and the minutes of a lesson."""
        text = "\n\n".join(cell.source for cell in self.notebook.cells[:3])
        found = HEADLINE.search(text)
        return (found["promise"], found["minutes"]) if found else ("", "")


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


def body(page: Page, known: set[str]) -> str:
    """The notebook as HTML; links to other notebooks lead to their pages."""
    exporter = HTMLExporter(template_name="basic")
    text, _ = exporter.from_notebook_node(page.notebook)

    def led(match: re.Match) -> str:
        target = f"{(Path(page.folder) / match[1]).as_posix()}.html"
        parts: list[str] = []
        for part in target.split("/"):
            parts = parts[:-1] if part == ".." else [*parts, part]
        if "/".join(parts) not in known:
            raise ValueError(f"{page.address}: the link to {match[1]}.ipynb leads to no page")
        return f'href="{match[1]}.html"'

    return re.sub(r'href="(?!https?:)([^"]+)\.ipynb"', led, text)


def index(every: Sequence[Page]) -> str:
    """The lessons, with minutes, objectives, exercises and solutions."""
    there = {page.address for page in every}
    rows = []
    for page in every:
        if page.folder != "notebooks":
            continue
        promise, minutes = page.headline
        told = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(promise))
        more = [
            f' · <a href="{folder}/{page.slug}.html">{KINDS[folder]}</a>'
            for folder in FOLDERS[1:]
            if f"{folder}/{page.slug}.html" in there
        ]
        rows.append(
            f'<li><a href="{page.address}">{html.escape(page.title)}</a> · {minutes} min'
            f"{''.join(more)}<br>You will {told}.</li>"
        )
    return (
        "<h1>DDP Lessons</h1><p>PyTorch DistributedDataParallel, taught by running it. These pages "
        "show each lesson as it ran; to run one yourself, take the notebooks.</p>"
        f'<ol start="0">{"".join(rows)}</ol>'
    )


def write(folder: Path, root: Path = ROOT) -> list[Path]:
    """Write the site into `folder`; return its files. Raises ValueError for a link to nowhere."""
    every = pages(root)
    known = {page.address for page in every}
    made = [(folder / "index.html", document("DDP Lessons", "", index(every)))]
    for page in every:
        text = document(page.title, navigation(page, every), body(page, known))
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
