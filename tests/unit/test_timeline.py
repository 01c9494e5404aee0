"""The timeline of a step: a pure function from recorded spans, so made-up runs will do here."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path

import pytest

from ddp_lessons import views
from ddp_lessons.placement import place
from ddp_lessons.run import Rank, Record, Run
from ddp_lessons.views import exposure, theme
from ddp_lessons.views.exposure import joined, length, without

Spans = list[tuple[str, float, float | None, int]]  # name, begin, end, bucket


def one_step(start: float, sent: list[tuple[float, float]]) -> Spans:
    """Forward in seconds 0 to 2, gradients ready at 3, 4 and 6, the step after all has come."""
    last = max(6.0, *(end for _, end in sent)) + 0.5
    spans = [("forward", 0.0, 2.0, -1), ("backward", 2.0, last, -1)]
    spans += [("gradient", moment, moment, -1) for moment in (3.0, 4.0, 6.0)]
    spans += [("all-reduce", begin, end, bucket) for bucket, (begin, end) in enumerate(sent)]
    spans += [("step", last, last + 1, -1)]
    return [(name, start + begin, start + end, bucket) for name, begin, end, bucket in spans]


def made(*ranks: Spans, delay: float = 0.25) -> Run:
    def record(rank: int, name: str, begin: float, end: float | None, bucket: int) -> Record:
        more = {"bucket": bucket, "delay": delay} if bucket >= 0 else {}
        return Record(rank, "span", begin, 1, {"span": name, **more, "times": [begin, end]})

    all_ranks = tuple(
        Rank(n, "cpu", 1, 1, 0, "", "", tuple(record(n, *span) for span in spans), True)
        for n, spans in enumerate(ranks)
    )
    placed = place(len(ranks), gpus=0, nccl=False)
    return Run("some.py", len(ranks), placed, 0.5, all_ranks, Path("log"))


LATE = [(6.1, 10.0)]  # one bucket, after the last gradient
MANY = [(3.1, 5.0), (5.0, 7.0), (7.0, 8.0)]  # hidden, half hidden, exposed
ONE_RUN, MANY_RUN = made(one_step(0, LATE), one_step(0, LATE)), made(*[one_step(0, MANY)] * 2)


def test_exposed_is_what_is_under_way_while_nothing_is_computed():
    [late, _], [many, _] = exposure.steps(ONE_RUN), exposure.steps(MANY_RUN)
    assert late.exposed == [(6.1, 10.0)]
    assert many.exposed == [(6.0, 8.0)]
    assert (late.early, many.early) == (0, 2)
    assert many.computed == 6.0


def test_all_reduces_that_overlap_are_exposed_once():
    [step] = exposure.steps(made(one_step(0, [(3.1, 9.0), (4.5, 8.0), (6.5, 9.5)])))
    assert step.exposed == [(6.0, 9.5)]


@pytest.mark.parametrize(
    ("stretches", "taken", "left"),
    [
        ([(0, 10)], [], [(0, 10)]),
        ([(0, 10)], [(2, 3), (5, 6)], [(0, 2), (3, 5), (6, 10)]),
        ([(0, 10)], [(-1, 4), (8, 12)], [(4, 8)]),
        ([(0, 10)], [(0, 10)], []),
        ([(0, 2), (4, 6)], [(1, 5)], [(0, 1), (5, 6)]),
        ([(0, 2)], [(2, 3)], [(0, 2)]),
    ],
)
def test_time_without_other_time(stretches, taken, left):
    assert without(stretches, taken) == left
    assert length(without(stretches, taken)) == sum(b - a for a, b in left)


def test_overlapping_time_is_joined():
    assert joined([(3, 4), (0, 2), (1, 3), (7, 8)]) == [(0, 4), (7, 8)]
    assert joined([(0, 9), (1, 2)]) == [(0, 9)]


def test_the_quickest_of_the_steps_like_the_last_is_drawn_the_same_on_all_ranks():
    quick = one_step(0, [(6.1, 6.2)])  # one bucket, as in DDP's first step
    slow, good = one_step(100, MANY[:2] + [(7.0, 30.0)]), one_step(200, MANY)
    last = one_step(300, MANY[:2] + [(7.0, 20.0)])
    other = [one_step(100 * n, sent) for n, sent in enumerate([[(6.1, 6.2)], MANY, MANY, MANY])]
    found = exposure.steps(made(quick + slow + good + last, sum(other, [])))
    assert [step.forward[0] for step in found] == [200, 200]


def test_of_two_runs_the_steps_that_computed_alike_are_drawn():
    def slower(start: float, by: float) -> Spans:
        """The forward takes `by` more, and all that follows comes as much later."""
        return [
            (name, start + begin + by * (name != "forward"), start + end + by, bucket)
            for name, begin, end, bucket in one_step(0, LATE)
        ]

    one = made(slower(0, 0) + slower(100, 3))
    two = made(slower(0, 1) + slower(100, 2.9) + slower(200, 8))
    found = exposure.matched([one, two])
    assert [step.forward[0] for those in found for step in those] == [100, 100]
    assert exposure.matched([two]) == [exposure.steps(two)]


def test_the_caption_tells_the_order_and_what_is_exposed_and_no_time():
    told = repr(views.timeline({"One": ONE_RUN, "Many": MANY_RUN}))
    assert told == (
        "One: 1 all-reduce, begun after the last gradient was ready, so all of it is exposed. "
        "Many: 3 all-reduces, the first begun while the backward still computed, so only a part "
        "is exposed. Each step begins after the last all-reduce has ended. A delay in the "
        "communication hook plays a slow network."
    )
    assert not re.search(r"\d (ms|s|milli)", told)


def test_the_caption_says_only_what_was_seen():
    mixed = repr(views.timeline({"x": made(one_step(0, LATE), one_step(0, MANY[:1]), delay=0)}))
    assert "begun on rank 1 while" in mixed
    assert "slow network" not in mixed
    early = [span if span[0] != "step" else ("step", 8.0, 8.2, -1) for span in one_step(0, LATE)]
    assert "Each step begins after" not in repr(views.timeline({"x": made(early)}))


def test_a_picture_says_how_much_is_exposed_of_how_much():
    """The drawn number, which the caption leaves out, is the exposed time."""
    from ddp_lessons.views import step_lanes

    texts = []
    real = step_lanes.plain_axes

    def spied(figure, **more):
        axes = real(figure, **more)
        put = axes.text
        axes.text = lambda x, y, text, **kw: texts.append(text) or put(x, y, text, **kw)
        return axes

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step_lanes, "plain_axes", spied)
        views.timeline({"One": ONE_RUN, "Many": MANY_RUN})
    shown = [text for text in texts if text.startswith("exposed")]
    assert shown == ["exposed:\n3900 of 3900 ms"] * 2 + ["exposed:\n2000 of 4900 ms"] * 2


def test_each_all_reduce_is_drawn_hatched_only_where_it_is_exposed():
    def hatched(run: Run) -> int:
        return views.timeline({"x": run}).svg.count('style="fill: url(#')

    assert (hatched(ONE_RUN), hatched(MANY_RUN)) == (2, 4)  # none of bucket 0, parts of 1 and 2


def test_the_timeline_is_the_same_each_time_and_leaves_ink_and_paper_to_the_theme():
    one, two = (views.timeline({"<&>": ONE_RUN, "Many": MANY_RUN}) for _ in range(2))
    assert one.svg == two.svg
    drawing = one.svg.partition("</style>")[2]
    assert "var(--ink)" in drawing
    for colour in theme.DARK:
        assert colour not in drawing
    assert f'alt="{html.escape(one.sentence)}"' in one.html()


def lacking(name: str) -> Run:
    return made([span for span in one_step(0, LATE) if span[0] != name])


@pytest.mark.parametrize("name", ["forward", "backward", "step", "gradient", "all-reduce"])
def test_a_step_that_lacks_a_span_is_not_drawn(name):
    with pytest.raises(ValueError, match="rank 0: each"):
        views.timeline({"x": lacking(name)})


def test_spans_that_did_not_end_or_steps_that_differ_are_not_drawn():
    left_open = [(n, b, None if n == "all-reduce" else e, k) for n, b, e, k in one_step(0, LATE)]
    with pytest.raises(ValueError, match="rank 0 did not end"):
        views.timeline({"x": made(left_open)})
    with pytest.raises(ValueError, match="different numbers of steps"):
        views.timeline({"x": made(one_step(0, LATE), one_step(0, LATE) + one_step(20, LATE))})
    with pytest.raises(ValueError, match="each step needs"):
        views.timeline({"x": replace(ONE_RUN, ranks=(replace(ONE_RUN[0], records=()),))})
