"""The rich forms of what a notebook shows: pure functions to HTML.

Real tables with captions, everything escaped, no ids, no script. Each says what the text form says,
and adds what differs from machine to machine: devices, backends, seconds, stderr.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from ddp_lessons.run import Run, columns, few, folded
from ddp_lessons.source import Source, numbered

if TYPE_CHECKING:
    from ddp_lessons.guess import Comparison
    from ddp_lessons.machine import Machine

_TEXT = "var(--jp-content-font-color1,inherit)"
_SOFT = "var(--jp-content-font-color2,#5c6166)"
_LINE = "var(--jp-border-color2,#c8ccd0)"
_LIT = "var(--jp-warn-color3,#ffe0b2)"

CSS = f"""
.ddp{{color:{_TEXT};font-size:var(--jp-content-font-size1,14px);line-height:1.45}}
.ddp table{{border-collapse:collapse;margin:.3em 0;table-layout:auto}}
.ddp caption{{text-align:left;color:{_TEXT};padding:.2em 0;caption-side:top}}
.ddp th,.ddp td{{text-align:left;padding:.2em .8em;border-bottom:1px solid {_LINE};
vertical-align:top;max-width:none;white-space:pre-wrap}}
.ddp td.ddp-n,.ddp th.ddp-n{{text-align:right}}
.ddp pre{{margin:0;white-space:pre-wrap;font-family:var(--jp-code-font-family,monospace);
font-size:var(--jp-code-font-size,13px);background:none;color:inherit}}
.ddp-soft{{color:{_SOFT}}}
.ddp summary{{cursor:pointer;color:{_SOFT}}}
.ddp-code table{{width:100%}}
.ddp .ddp-code td{{border:0;padding:0 .6em;white-space:pre-wrap;
font-family:var(--jp-code-font-family,monospace);font-size:var(--jp-code-font-size,13px)}}
.ddp .ddp-code tr{{background:none}}
.ddp .ddp-code tr.ddp-lit td{{box-shadow:inset 3px 0 0 #d1600a;background:rgba(209,96,10,.14)}}
.ddp .ddp-code td.ddp-lit-n{{box-shadow:none}}
.ddp-k{{color:var(--jp-mirror-editor-keyword-color,#008000);font-weight:600}}
.ddp-s{{color:var(--jp-mirror-editor-string-color,#a22)}}
.ddp-c{{color:var(--jp-mirror-editor-comment-color,#408080);font-style:italic}}
.ddp-m{{color:var(--jp-mirror-editor-number-color,#080)}}
""".replace("\n", "")


def block(inner: str) -> str:
    return f'<style>{CSS}</style><div class="ddp">{inner}</div>'


def table(head: list[str], rows: list[list[str]], caption: str) -> str:
    """A table of escaped cells; the first column heads its row."""
    top = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return (
        f"<table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    )


def details(summary: str, inner: str) -> str:
    return f"<details><summary>{escape(summary)}</summary>{inner}</details>"


def run(run: Run) -> str:
    """A row a rank: device, how it ended, what it recorded and printed."""
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
    parts = [table(head, few(rows), caption), f'<div class="ddp-soft">{escape(small)}</div>']
    for rank in run:
        if rank.stderr.strip():
            lines = folded(rank.stderr)
            title = f"rank {rank.rank} wrote to stderr ({len(rank.stderr.splitlines())} lines)"
            parts.append(details(title, f"<pre>{escape(chr(10).join(lines))}</pre>"))
    return block("".join(parts))


def ending(rank: object) -> str:
    if rank.finished and rank.exitcode == 0:
        return "end of script"
    if rank.failure:
        where = f", line {rank.failure.line}" if rank.failure.line else ""
        return f"{rank.failure.kind}{where}"
    return "stopped" if rank.exitcode is None else f"exit code {rank.exitcode}"


def comparison(comparison: Comparison) -> str:
    return block(f"<p>{escape(repr(comparison))}</p>")


def source(source: Source) -> str:
    """Highlighted code with line numbers; folded lines can be opened."""
    coloured = highlight("\n".join(source.lines))
    rows = []
    for number, gap in numbered(source):
        if gap:
            rows.append(f'<tr><td></td><td class="ddp-soft">… {gap} more …</td></tr>')
        if number:
            rows.append(_code_row(number, coloured[number - 1], number in source.lit))
    caption = f"<caption>{escape(source.caption)}</caption>"
    parts = [f'<div class="ddp-code"><table>{caption}<tbody>{"".join(rows)}</tbody></table></div>']
    if len(source.shown) < len(source.lines):
        whole = "".join(
            _code_row(n, line, n in source.lit) for n, line in enumerate(coloured, start=1)
        )
        inner = f'<div class="ddp-code"><table><tbody>{whole}</tbody></table></div>'
        parts.append(details(f"all of {source.name}", inner))
    return block("".join(parts))


def _code_row(number: int, code: str, lit: bool) -> str:
    mark = ' class="ddp-lit"' if lit else ""
    return f'<tr{mark}><td class="ddp-n ddp-soft">{number}</td><td>{code or "&nbsp;"}</td></tr>'


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
    for kind, text in lex(code, PythonLexer(stripnl=False)):
        name = next((name for group, name in classes if kind in group), None)
        for index, part in enumerate(text.split("\n")):
            if index:
                lines.append("")
            if part:
                safe = escape(part)
                lines[-1] += f'<span class="ddp-{name}">{safe}</span>' if name else safe
    return lines


def machine(machine: Machine) -> str:
    rows = [[fact.name, fact.value] for fact in machine.facts]
    parts = [table(["what", "here"], rows, "This machine")]
    advice = "".join(f"<li>{escape(line)}</li>" for line in machine.advice)
    parts.append(f"<p>{escape(machine.verdict)}</p>" + (f"<ul>{advice}</ul>" if advice else ""))
    lessons = [[lesson, "yes" if nccl else "no"] for lesson, nccl in machine.lessons]
    parts.append(table(["lesson", "on NCCL here"], lessons, "Which lessons run on NCCL here"))
    return block("".join(parts))
