"""Pictures and tables: pure functions, so made-up runs will do here."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tags import parsed

from ddp_lessons import views
from ddp_lessons.guess import compare
from ddp_lessons.machine import Fact, Machine
from ddp_lessons.placement import place
from ddp_lessons.run import Rank, Record, Run
from ddp_lessons.source import show
from ddp_lessons.views import html, theme
from ddp_lessons.views.gap import gaps

PAPERS = (theme.PAPER, theme.DARK[theme.PAPER])


def a_rank(number: int, *records: Record, **facts) -> Rank:
    usual = {
        "device": "cpu",
        "pid": 4000 + number,
        "parent": 1,
        "exitcode": 0,
        "stdout": "",
        "stderr": "",
        "finished": True,
        "local_rank": number,
    }
    return Rank(rank=number, records=records, **usual | facts)


def a_run(*ranks: Rank, source: str = "") -> Run:
    placed = place(len(ranks), gpus=0, nccl=False)
    return Run("some.py", len(ranks), placed, 0.5, ranks, Path("log"), source)


def held(device: int, kind: str, size: int) -> Record:
    return Record(0, "held", 0.0, 1, {"device": device, "kind": kind, "bytes": size})


MEETING = a_run(
    a_rank(0, started=1.0, called=1.1, joined=2.3),
    a_rank(1, started=1.0, called=2.1, joined=2.2),
)
MEMORY = a_run(
    a_rank(0, Record(0, "a", 1.0, 2, {"x": [1]}), Record(0, "b", 1.0, 5, {"x": [2]})),
    a_rank(1, Record(1, "a", 1.0, 2, {"x": [1]})),
    source='x = [1]\nrecord("a", x=x)\nif rank == 0:\n    x = [2]\n    record("b", x=x)\n',
)
SUM = a_run(
    a_rank(0, Record(0, "before sum", 1.0, 2, {"x": 1}), Record(0, "after sum", 2.0, 4, {"x": 11})),
    a_rank(1, Record(1, "before sum", 1.0, 2, {"x": 10})),
)
ARROWS = a_run(
    a_rank(0, Record(0, "r", 1.0, 1, {"local": [1.0, 2.0], "sum": [3.0, 3.0], "mean": [1.5, 1.5]})),
    a_rank(1, Record(1, "r", 1.0, 1, {"local": [2.0, 1.0], "sum": [3.0, 3.0], "mean": [1.5, 1.5]})),
)


def whole(*mean: float) -> Run:
    """What one process records about the global batch."""
    return a_run(a_rank(0, Record(0, "r", 1.0, 1, {"mean": list(mean)})))


def trained(*ranks: list[list[float]]) -> Run:
    """A run whose ranks recorded these parameters, a list for each step."""
    return a_run(
        *(
            a_rank(n, *(Record(n, "step", 1.0, 1, {"parameters": p}) for p in steps))
            for n, steps in enumerate(ranks)
        )
    )


APART = trained([[1.0, 2.0], [1.0, 2.0]], [[1.0, 2.0], [1.25, 1.5]])
TOGETHER = trained([[1.0, 2.0], [1.0, 2.25]], [[1.0, 2.0], [1.0, 2.25 + 1e-8]])
NAMES = ("start", "process", "outcome", "until")
STARTS = a_run(
    *(
        a_rank(n, Record(n, "judged", 6.0, 1, dict(zip(NAMES, values, strict=True))), called=1.0)
        for n, values in enumerate(
            [
                ("A", "0/2", "goes on", 2.0),
                ("A", "1/2, a second later", "raises", 1.5),
                ("B", "0/2", "waits", None),
            ]
        )
    )
)
PICTURES = {
    "before and after": lambda: views.before_after(SUM),
    "meeting": lambda: views.meeting(MEETING),
    "moments": lambda: views.moments(MEMORY, "a"),
    "memories": lambda: views.memories(MEMORY, "x"),
    "machines": lambda: views.machines(MEETING),
    "arrows": lambda: views.gradient_arrows(ARROWS, whole(1.5, 1.5)),
    "gap": lambda: views.parameter_gap({"apart": APART, "together": TOGETHER}),
    "starts": lambda: views.starts(STARTS),
    "bytes": lambda: views.bytes_per_device({"A": a_run(a_rank(0, held(0, "inputs", 10**6)))}),
}


@pytest.mark.parametrize("name", PICTURES)
def test_the_same_facts_give_the_same_drawing(name: str) -> None:
    assert PICTURES[name]().svg == PICTURES[name]().svg


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_says_in_each_form_what_it_shows(name: str) -> None:
    made = PICTURES[name]()._repr_mimebundle_()
    sentence = made["text/plain"]
    assert sentence.endswith(".")
    escaped = html.escape(sentence)
    assert f'alt="{escaped}"' in made["text/html"]
    assert f"<figcaption>{escaped}</figcaption>" in made["text/html"]
    assert made["image/png"]


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_leaves_ink_and_paper_to_the_theme(name: str) -> None:
    drawing = PICTURES[name]().svg.partition("</style>")[2]
    assert "var(--ink)" in drawing
    for colour in theme.DARK:
        assert colour not in drawing


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.parametrize("colour", theme.RANKS)
def test_a_mark_stands_out_on_light_and_dark_paper(colour: str, paper: str) -> None:
    assert contrast(colour, paper) >= 3


@pytest.mark.parametrize("colour", [theme.INK, theme.SOFT])
def test_text_can_be_read_on_light_and_dark_paper(colour: str) -> None:
    assert contrast(colour, theme.PAPER) >= 4.5
    assert contrast(theme.DARK[colour], theme.DARK[theme.PAPER]) >= 4.5


def test_a_meeting_says_who_came_last_and_that_nobody_left_before() -> None:
    assert "group last. No rank left before that" in repr(views.meeting(MEETING))
    early = replace(MEETING, ranks=(replace(MEETING[0], joined=1.5), MEETING[1]))
    assert "Some rank left before that" in repr(views.meeting(early))


def test_without_a_meeting_there_is_no_picture_of_one() -> None:
    with pytest.raises(ValueError, match="not every rank"):
        views.meeting(a_run(a_rank(0, started=1.0)))


def test_memories_say_what_each_rank_holds_at_its_end() -> None:
    assert repr(views.memories(MEMORY, "x")) == "At the end x is [2] on rank 0 and [1] on rank 1."


def test_a_variable_that_nobody_recorded_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match="no rank recorded 'y'"):
        views.memories(MEMORY, "y")
    with pytest.raises(ValueError, match="no rank recorded 'y'"):
        views.moments(MEMORY, "y")


def test_bytes_are_summed_by_device() -> None:
    run = a_run(a_rank(0, held(0, "inputs", 10**6), held(0, "inputs", 10**6), held(1, "inputs", 5)))
    assert "A: 2 and 0 MB" in repr(views.bytes_per_device({"A": run}))


def test_arrows_say_whether_the_mean_is_the_global_batchs_gradient() -> None:
    good, bad = (repr(views.gradient_arrows(ARROWS, whole(1.5, y))) for y in (1.5, 1.6))
    assert "(1.5, 1.5), is the gradient of the global batch, (1.5, 1.5)" in good
    assert "(1.5, 1.5), is not the gradient of the global batch, (1.5, 1.6)" in bad
    assert good.endswith("Their sum is 2 times as long.")


def test_a_gradient_of_three_numbers_is_no_arrow() -> None:
    with pytest.raises(ValueError, match="two numbers"):
        views.gradient_arrows(ARROWS, whole(1.0, 2.0, 3.0))


def test_a_gap_is_the_largest_difference_between_ranks_at_each_step() -> None:
    assert gaps(APART) == [0.0, 0.5]
    assert repr(views.parameter_gap({"apart": APART, "together": TOGETHER})) == (
        "Parameter gap between ranks after step 2: apart 0.5; together under 1e-6."
    )


def test_a_gap_to_another_run_counts_every_rank_of_the_one() -> None:
    single = trained([[1.0, 2.0], [1.0, 2.0]])
    assert gaps((APART, single)) == [0.0, 0.5]
    # The ranks agree with one another, and not with the single process.
    assert gaps((TOGETHER, single)) == pytest.approx([0.0, 0.25])
    said = repr(views.parameter_gap({"x": (TOGETHER, single)}))
    assert said == "Parameter gap to some.py after step 2: x 0.25."


def test_a_small_gap_is_told_by_a_bound_since_rounding_differs() -> None:
    told = repr(views.parameter_gap({"x": trained([[0.0]], [[0.0004]])}))
    assert told == "Parameter gap between ranks after step 1: x under 0.001."


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (a_run(a_rank(0)), "recorded `parameters`"),
        (trained([[1.0]], [[1.0], [2.0]]), "as often"),
        (trained([[1.0]], [[float("nan")]]), "not a number"),
        (trained([[1.0], [1.0]], [[float("inf")], [1.0]]), "infinite"),
    ],
)
def test_a_gap_that_cannot_be_measured_is_not_drawn(run: Run, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        views.parameter_gap({"x": run})


WILD = "<script>alert('&')</script>"
TALKING = a_run(
    a_rank(0, Record(0, "r", 1.0, 1, {"loss": 0.12345, WILD: WILD}), stdout=f"{WILD}\nline two\n"),
    a_rank(1, Record(1, "r", 1.0, 1, {"loss": 2.0}), stderr=WILD),
)
REPRS = {
    "run": lambda: html.run(TALKING),
    "comparison": lambda: html.comparison(compare(WILD, [1, WILD])),
    "source": lambda: html.source(show("01_why_ddp/ddp.py", since="01_why_ddp/single.py")),
    "machine": lambda: html.machine(
        Machine(True, WILD, (Fact("torch", WILD),), (WILD,), ((WILD, True),))
    ),
}


@pytest.mark.parametrize("name", REPRS)
def test_html_has_no_script_no_id_and_only_our_classes(name: str) -> None:
    tags = parsed(REPRS[name]())
    for tag, attributes in tags.found:
        assert tag != "script"
        assert "id" not in attributes
        assert all(c.startswith("ddp") for c in attributes.get("class", "").split())


def test_a_runs_html_says_all_that_its_text_says() -> None:
    text = parsed(html.run(TALKING)).text
    for line in repr(TALKING).splitlines():
        for word in line.partition(" | ")[2].split() or line.split():
            assert word in text, word


def test_a_runs_text_hides_what_differs_from_machine_to_machine() -> None:
    text = repr(TALKING)
    assert not re.search(r"cpu|gloo|4000|0\.5", text)
    assert "gloo" in html.run(TALKING)
    assert "cpu" in html.run(TALKING)


def test_a_table_has_a_caption_and_headings_with_scope() -> None:
    found = parsed(html.run(TALKING)).found
    assert "caption" in [tag for tag, _ in found]
    assert {a["scope"] for tag, a in found if tag == "th"} == {"col", "row"}


def test_lit_lines_are_marked_in_text_too() -> None:
    source = show("01_why_ddp/ddp.py", light="set_epoch")
    marked = [line for line in parsed(html.source(source)).text.splitlines() if "▸" in line]
    assert len(marked) == 2  # in the excerpt and in the whole
    assert all("set_epoch" in line for line in marked)


def test_highlighting_changes_no_character() -> None:
    code = "def f(x):\n    '''two\n    lines'''\n    return x < 1 and '&'  # note\n"
    lines = [parsed(line).text for line in html.highlight(code.rstrip("\n"))]
    assert lines == code.splitlines()


def test_many_ranks_are_counted_where_they_say_the_same() -> None:
    ranks = [a_rank(n, Record(n, "r", 1.0, 1, {"sum": 3})) for n in range(20)]
    assert "… 14 ranks alike …" in repr(a_run(*ranks))
    ranks[7] = a_rank(7, Record(7, "r", 1.0, 1, {"sum": 4}))
    assert "… 14 more ranks …" in repr(a_run(*ranks))


def test_starts_are_told_one_by_one() -> None:
    assert repr(views.starts(STARTS)).endswith("A: goes on, raises; B: waits.")
