"""The limits catch what they are for: each is shown a notebook that breaks it."""

from __future__ import annotations

from pathlib import Path

import limits
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

HEAD = "# Average gradients\n\nYou will average. · 5 min · 2 ranks on any laptop · needs 03"
RECALL = "**Recall.** <details><summary>Who?</summary>x</details> What? When?"


def book(*cells: NotebookNode) -> NotebookNode:
    return new_notebook(cells=[new_markdown_cell(HEAD), *cells])


def text(markdown: str) -> NotebookNode:
    return new_markdown_cell(markdown)


def cell(source: str, count: int | None = 1, tags: tuple[str, ...] = (), **plain: str):
    """A code cell with a stream, or with a result, as its output."""
    outputs = []
    if "stdout" in plain or "stderr" in plain:
        outputs = [new_output("stream", name=name, text=said) for name, said in plain.items()]
    elif "error" in plain:
        outputs = [new_output("error", ename="E", evalue=plain["error"], traceback=[])]
    elif "result" in plain:
        data = {"text/plain": plain["result"]}
        outputs = [new_output("execute_result", data=data, execution_count=count)]
    metadata = {"tags": list(tags)} if tags else {}
    return new_code_cell(source, execution_count=count, outputs=outputs, metadata=metadata)


def lines(number: int, head: str = "x") -> NotebookNode:
    return cell("\n".join([head] + ["x"] * (number - 1)))


BEFORE = cell('from ddp_lessons import questions\n\nquestions("06_a", before=None)')
AFTER = cell('questions("06_a", after=None)  # your letters')
NOW = text("## Without scrolling\n\n1. Why?")


def asks_of_a_lesson(notebook: NotebookNode) -> list[str]:
    return limits.asks(notebook, "06_a")


BROKEN = {
    "a cell that never ran": (limits.executed, book(cell("x", count=None))),
    "cells in another order": (limits.executed, book(cell("x", count=2), cell("y", count=1))),
    "a warning": (limits.quiet, book(cell("x", stderr="Warning"))),
    "an error without its tag": (limits.quiet, book(cell("x", error="no"))),
    "a tag without its error": (limits.quiet, book(cell("x", tags=("raises-exception",)))),
    "a path in a result": (limits.any_machine, book(cell("x", result="see /var/log/run.log"))),
    "a path in what was printed": (limits.any_machine, book(cell("x", stdout="at /home/me/x"))),
    "a path in an error": (limits.any_machine, book(cell("x", error="no '/usr/lib/x.py'"))),
    "a process id": (limits.any_machine, book(cell("x", stdout="rank 0 has pid 4711"))),
    "a port": (limits.any_machine, book(cell("x", error="connect to 127.0.0.1:29500"))),
    "an address in memory": (limits.any_machine, book(cell("x", result="0x7f3a2c1b"))),
    "an object without a repr": (limits.any_machine, book(cell("x", result="<a.B object>"))),
    "a figure without a sentence": (
        limits.comparable,
        book(cell("x", result="<Figure size 640x480 with 1 Axes>")),
    ),
    "1,201 words": (limits.length, book(text("word " * 1201), *[cell("x") for _ in range(10)])),
    "folded words": (
        limits.length,
        book(
            text(f"<details><summary>a</summary>{'word ' * 1200}</details>"),
            *[cell("x") for _ in range(10)],
        ),
    ),
    "9 code cells": (limits.length, book(*[cell("x") for _ in range(9)])),
    "23 code cells": (limits.length, book(*[cell("x") for _ in range(23)])),
    "a median of 5 lines": (limits.cell_sizes, book(*[lines(5) for _ in range(3)])),
    "9 lines": (limits.cell_sizes, book(lines(1), lines(1), lines(9))),
    "15 lines on the ranks": (limits.cell_sizes, book(lines(1), lines(1), lines(15, "%%ranks"))),
    "twice the minutes": (limits.minutes_hold, book(text("word " * 170 * 8))),
    "half the minutes": (limits.minutes_hold, book()),
    "two titles": (limits.headings, book(text("# Again"))),
    "no headline": (limits.promises, new_notebook(cells=[text("# Title")])),
    "no minutes": (limits.promises, new_notebook(cells=[text("You will x. · 2 ranks")])),
    "nothing about what it needs": (
        limits.promises,
        new_notebook(cells=[text("You will x. · 9 min · 2 ranks")]),
    ),
    "six new terms": (
        limits.promises,
        new_notebook(cells=[text(HEAD + " · new terms: a, b, c, d, e, f")]),
    ),
    "no recall": (limits.recall, book(cell("x"))),
    "two questions": (limits.recall, book(text(RECALL.replace("When?", "")), cell("x"))),
    "open answers": (limits.recall, book(text("Recall: a? b? c?"), cell("x"))),
    "a recall at the end": (limits.recall, book(cell("x"), text(RECALL))),
    "a guess without an answer": (limits.guesses, book(cell("guess = None"), cell("run"))),
    "two guesses, one answer": (
        limits.guesses,
        book(cell("guess = None"), cell("guess = None"), cell("compare(guess, 3)")),
    ),
    "another guess's answer": (
        limits.guesses,
        book(cell("sum_guess = None"), cell("compare(guess, 3)")),
    ),
    "no questions before": (asks_of_a_lesson, book(AFTER, NOW)),
    "no questions after": (asks_of_a_lesson, book(BEFORE, NOW)),
    "questions before and no others": (asks_of_a_lesson, book(BEFORE, cell(BEFORE.source), NOW)),
    "after first": (asks_of_a_lesson, book(AFTER, BEFORE, NOW)),
    "another lesson's questions": (
        asks_of_a_lesson,
        book(cell('questions("07_b", before=None)'), AFTER, NOW),
    ),
    "answers given away": (
        asks_of_a_lesson,
        book(cell('questions("06_a", before="abc")'), AFTER, NOW),
    ),
    "questions below the first run": (asks_of_a_lesson, book(cell("x"), BEFORE, AFTER, NOW)),
    "questions amid the lesson": (asks_of_a_lesson, book(BEFORE, AFTER, cell("x"), NOW)),
    "questions at the very end": (asks_of_a_lesson, book(BEFORE, NOW, AFTER)),
    "a number as an answer": (limits.lists, book(text("1. Two.\n2. 3.\n"))),
    "a year at the start": (limits.lists, book(text("- 2026. It rained.\n"))),
    "a word to avoid": (limits.tone, book(text("Simply call it."))),
    "of course": (limits.tone, book(text("It is, of course, three."))),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_limit_catches(broken: str):
    rule, notebook = BROKEN[broken]
    assert rule(notebook)


def test_a_good_lesson_passes_every_limit():
    notebook = book(
        text(RECALL),
        cell("guess = None  # your number"),
        cell("%%ranks -n 2\n" + "x\n" * 13, count=2, stdout="rank 0 has 1.5\n"),
        cell("compare(guess, 3)", count=3, result="no guess · measured 3"),
        cell("x", count=4, tags=("raises-exception",), error="rank 1 failed first, line 3"),
        *[cell("x", count=number) for number in range(5, 11)],
        text("```\n" + "word " * 2000 + "\n# not a title\n```\nThe justified, uneasy course."),
    )
    # its lesson is a second argument
    others = {asks_of_a_lesson}
    every = [getattr(limits, name) for name in dir(limits) if not name.startswith("_")]
    for rule in {rule for rule, _ in BROKEN.values()} - others:
        assert rule in every
        assert rule(notebook) == [], rule.__name__


def test_a_lesson_that_asks_before_and_after_passes():
    lesson = book(text(RECALL), text("## What you know already"), BEFORE, cell("x"), AFTER, NOW)
    assert asks_of_a_lesson(lesson) == []


def test_a_headline_may_stand_in_two_paragraphs():
    notebook = new_notebook(
        cells=[text("# T\n\nYou will see it.\n\n20 min · 2 ranks on any laptop · needs nothing")]
    )
    match = limits.headline(notebook)
    assert (match["promise"], match["minutes"], match["ranks"]) == ("see it", "20", "2")


def test_links_are_followed_from_the_folder_of_the_page(tmp_path: Path):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "00_a.ipynb").touch()
    (tmp_path / "README.md").touch()
    here = tmp_path / "notebooks"
    good = "[a](00_a.ipynb) [b](../README.md#top) [c](https://x.org) [d](#here) `[e](none.py)`"
    assert limits.links(good, here, tmp_path) == []
    for bad in ("[a](01_b.ipynb)", "[a](../../etc)", "[a](http://x.org)", '<img src="no.png">'):
        assert limits.links(bad, here, tmp_path), bad
