"""The rich forms of what a notebook shows: pure functions to HTML.

Real tables with captions, everything escaped, no ids, no script. Each says what the text form says,
and adds what differs from machine to machine: devices, backends, seconds, stderr.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from textwrap import dedent
from typing import TYPE_CHECKING

from ddp_lessons import endings, hang, stall
from ddp_lessons.guess import told
from ddp_lessons.run import Run
from ddp_lessons.source import Source, lines, numbered
from ddp_lessons.text import columns, ending, few, folded

if TYPE_CHECKING:
    from ddp_lessons.checks.verdict import Verdict
    from ddp_lessons.guess import Comparison
    from ddp_lessons.machine import Machine
    from ddp_lessons.submission import Submission

_TEXT = "var(--jp-content-font-color1,inherit)"
# Quiet text is the page's own, a little see-through: readable on a lit line, too, in any theme, as
# the notebook's own soft and comment colours are not.
_SOFT = "color:inherit;opacity:.75"
_LINE = "var(--jp-border-color2,#c8ccd0)"

CSS = f"""
.ddp{{color:{_TEXT};font-size:var(--jp-content-font-size1,14px);line-height:1.45}}
.ddp .ddp-t{{border-collapse:collapse;margin:.3em 0;table-layout:auto}}
.ddp .ddp-t caption{{text-align:left;color:{_TEXT};padding:.2em 0;caption-side:top;
white-space:nowrap;font-weight:600;font-size:inherit}}
.ddp .ddp-t th.ddp-l,.ddp .ddp-t td.ddp-l{{text-align:left}}
.ddp .ddp-t th,.ddp .ddp-t td{{text-align:right;padding:.2em .8em;border-bottom:1px solid {_LINE};
vertical-align:top;max-width:none;white-space:pre-wrap}}
.ddp .ddp-t tbody th.ddp-l{{font-weight:normal}}
.ddp pre.ddp-code{{margin:.3em 0;white-space:pre;word-break:normal;overflow-wrap:normal;
overflow-x:auto;line-height:1.35;
font-family:var(--jp-code-font-family,monospace);font-size:var(--jp-code-font-size,13px);
background:none;color:inherit}}
.ddp-row{{display:inline-block;min-width:100%;padding-left:.4em;box-sizing:border-box}}
.ddp-lit{{background:rgba(209,96,10,.1);box-shadow:inset 3px 0 0 #d1600a}}
.ddp .ddp-t td.ddp-mono{{font-family:var(--jp-code-font-family,monospace);
font-size:var(--jp-code-font-size,13px)}}
.ddp .ddp-first{{margin:.3em 0}}
.ddp .ddp-soft{{{_SOFT}}}
.ddp .ddp-asked>li{{margin:.4em 0}}
.ddp .ddp-asked ul{{margin:0;padding-left:1.2em;list-style:none}}
.ddp .ddp-mark{{font-weight:600;margin-right:.4em}}
.ddp summary{{cursor:pointer;{_SOFT}}}
.ddp summary:hover,.ddp summary:focus{{opacity:1}}
.ddp-k{{color:var(--jp-mirror-editor-keyword-color,#008000);font-weight:600}}
.ddp-s{{color:var(--jp-mirror-editor-string-color,#a22)}}
.ddp-c{{{_SOFT};font-style:italic}}
.ddp-m{{color:var(--jp-mirror-editor-keyword-color,#008000)}}
""".replace("\n", "")


def block(inner: str) -> str:
    return f'<style>{CSS}</style><div class="ddp">{inner}</div>'


def table(head: list[str], rows: list[list[str]], caption: str, code: str = "") -> str:
    """A table of escaped cells, the first of each row its heading. Columns of numbers stand right,
    others left; the column headed `code` holds code."""
    left = [not all(_is_number(row[i]) for row in rows) for i in range(len(head))]

    def cell(tag: str, index: int, text: str, scope: str = "") -> str:
        kinds = ["ddp-l"] * left[index] + ["ddp-mono"] * (head[index] == code and tag == "td")
        kind = f' class="{" ".join(kinds)}"' if kinds else ""
        return f"<{tag}{kind}{scope}>{escape(text)}</{tag}>"

    top = "".join(cell("th", i, text, ' scope="col"') for i, text in enumerate(head))
    body = "".join(
        "<tr>"
        + cell("th", 0, row[0], ' scope="row"')
        + "".join(cell("td", i, text) for i, text in enumerate(row[1:], start=1))
        + "</tr>"
        for row in rows
    )
    return (
        f'<table class="ddp-t"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    )


def _is_number(text: str) -> bool:
    try:
        float(text or 0)
    except ValueError:
        return False
    return True


def pre(code: str, wrap: bool = False) -> str:
    """Preformatted HTML. Its style stands in the tag too: notebooks keep that one when they strip
    style sheets, and would break lines in the middle of a word without it."""
    space = "pre-wrap" if wrap else "pre"
    style = f"white-space:{space};word-break:normal;overflow-x:auto"
    return f'<pre class="ddp-code" style="{style}">{code}</pre>'


def details(summary: str, inner: str) -> str:
    return f"<details><summary>{escape(summary)}</summary>{inner}</details>"


def run(run: Run) -> str:
    """What went wrong, then a row a rank: device, how it ended, what it recorded and printed."""
    recorded = columns(run)
    printed = any(rank.stdout for rank in run)
    head = ["rank", "device", *(name for name, _ in recorded)]
    if not run.ok:
        head.append("end")
    if printed:
        head.append("printed")
    rows = []
    for rank in run:
        row = [str(rank.rank), rank.device, *(cells[rank.rank] for _, cells in recorded)]
        if not run.ok:
            row.append(ending(rank))
        if printed:
            row.append("\n".join(folded(rank.stdout)))
        rows.append(row)
    plural = "rank" if run.world_size == 1 else "ranks"
    caption = f"{run.script} on {run.world_size} {plural}: {'ok' if run.ok else 'failed'}"
    small = f"{run.seconds:.2f} s · {run.placement.sentence}"
    parts = [*failure(run), table(head, few(rows), caption)]
    parts.append(f'<div class="ddp-soft">{escape(small)}</div>')
    if run.starter and run.starter.stdout:
        printed = pre(escape(chr(10).join(folded(run.starter.stdout))))
        parts.append(f"<div>The script's own process printed:</div>{printed}")
    wrote = [(f"rank {rank.rank}", rank.stderr) for rank in run]
    wrote += [("the script's own process", run.starter.stderr)] if run.starter else []
    for who, text in wrote:
        if text.strip():
            lines = folded(text)
            title = f"{who} wrote to stderr ({len(text.splitlines())} lines)"
            parts.append(details(title, pre(escape(chr(10).join(lines)))))
    return block("".join(parts))


def failure(run: Run) -> list[str]:
    """The report. At the time limit a table stands for its lines on where each rank stood."""
    if not run.report:
        return []
    first, _, rest = run.report.partition("\n")
    parts = [f'<p class="ddp-first"><strong>{escape(first)}</strong></p>']
    found = stall.standings(run)
    places = "\n".join(hang.places(found))
    # Only the report of a run that came to its limit has these lines.
    if places and places in rest:
        groups = [[one] for one in found] if len(found) <= EACH else stall.grouped(found)
        rows = [standing_row(group) for group in groups]
        head = ["rank", "stands", "line", "source"]
        parts.append(table(head, few(rows), "Where each rank stood", code="source"))
        rest = rest.replace(places, "").strip("\n")
    return [*parts, pre(escape(dedent(rest)), wrap=True)] if rest else parts


EACH = 8  # ranks that have a row each where those that stand alike could share one


def standing_row(group: Sequence[stall.Standing]) -> list[str]:
    """Ranks that stand alike: their numbers, what they do, the line and its source."""
    who = stall.names([one.rank for one in group]).partition(" ")[2]
    does = "at work" if group[0].kind == "at work" else group[0].what
    return [who, does, group[0].place, code_of(group[0])]


def code_of(one: stall.Standing) -> str:
    """The line where a rank stands; if that is in a helper, the calls that led there."""
    if len(one.trace) < 2:
        return one.source
    return dedent("\n".join(endings.levels(one.trace)))


def comparison(comparison: Comparison) -> str:
    if comparison.agrees is None:
        hint = "no guess yet: put yours into the cell above and run it again, or unfold"
        return block(details(hint, f"<p>measured {escape(told(comparison.measured))}</p>"))
    return block(f"<p>{escape(repr(comparison))}</p>")


def source(source: Source) -> str:
    """Highlighted code with line numbers; folded lines can be opened."""
    coloured = highlight("\n".join(source.lines))
    width = len(str(len(source.lines)))

    def row(number: int) -> str:
        lit = number in source.lit
        # The mark is text, so that it is there where a notebook strips styles.
        gutter = f'<span class="ddp-soft">{"▸" if lit else " "} {number:>{width}}  </span>'
        kind = "ddp-row ddp-lit" if lit else "ddp-row"
        return f'<span class="{kind}">{gutter}{coloured[number - 1]}</span>'

    rows = []
    for number, gap in numbered(source):
        if gap:
            rows.append(f'<span class="ddp-soft">{"":{width + 4}}… {lines(gap)} …</span>')
        if number:
            rows.append(row(number))
    parts = [f"<div>{escape(source.caption)}</div>", pre(chr(10).join(rows))]
    if len(source.shown) < len(source.lines):
        whole = "\n".join(row(number) for number in range(1, len(source.lines) + 1))
        parts.append(details(f"all of {source.name}", pre(whole)))
    return block("".join(parts))


def highlight(code: str) -> list[str]:
    """Python source as HTML, one string a line, in the notebook's own syntax colours."""
    from pygments import lex
    from pygments.lexers import PythonLexer
    from pygments.token import Comment, Keyword, Number, Operator, String

    classes = (
        (Comment, "c"),
        (String, "s"),
        (Number, "m"),
        (Keyword, "k"),
        (Operator.Word, "k"),
    )
    lines = [""]
    for kind, text in lex(code, PythonLexer(stripnl=False, ensurenl=False)):
        name = next((name for group, name in classes if kind in group), None)
        for index, part in enumerate(text.split("\n")):
            if index:
                lines.append("")
            if part:
                safe = escape(part)
                lines[-1] += f'<span class="ddp-{name}">{safe}</span>' if name else safe
    return lines


def submission(submission: Submission) -> str:
    """The file for sbatch, then the job's run, or why there is none."""
    parts = [pre(escape(submission.batch)), f"<p>{escape(submission.note)}</p>"]
    if submission.run:
        parts.append(run(submission.run))
    return block("".join(parts))


def machine(machine: Machine) -> str:
    rows = [[fact.name, fact.value] for fact in machine.facts]
    parts = [table(["what", "here"], rows, "This machine")]
    advice = "".join(f"<li>{escape(line)}</li>" for line in machine.advice)
    parts.append(f"<p>{escape(machine.verdict)}</p>" + (f"<ul>{advice}</ul>" if advice else ""))
    lessons = [[lesson, "yes" if nccl else "no"] for lesson, nccl in machine.lessons]
    parts.append(table(["lesson", "on NCCL here"], lessons, "Which lessons run on NCCL here"))
    return block("".join(parts))


def verdict(found: Verdict) -> str:
    """An exercise's verdict: a row for each requirement, then the failing case."""
    marks = {True: "✓ held", False: "✗ not held", None: "? not known yet"}
    # The text marks code by backticks; a table of sentences can do without.
    rows = [[said.replace("`", ""), marks[held]] for said, held in found.requirements]
    caption = f"{found.key}: {'passed' if found.passed else 'not passed'}"
    lines = [*([f"With {found.case}:"] if found.case else []), *found.told]
    case = f'<pre class="ddp-code">{escape(chr(10).join(lines))}</pre>' if lines else ""
    usual = f'<p class="ddp-first">{escape(found.usual)}</p>' if found.usual else ""
    return block(table(["requirement", "verdict"], rows, caption) + case + usual)
