"""The picture of a training that was killed and went on, from made-up logs."""

from __future__ import annotations

import html

import pytest

from ddp_lessons import views
from ddp_lessons.views import theme

WHOLE = [{"step": 4 * n, "loss": 2.0 / n} for n in (1, 2, 3, 4)]
APART = [{**line, "loss": line["loss"] + 0.024 * (line["step"] > 8)} for line in WHOLE]


def drawn(**logs: list) -> theme.Picture:
    return views.resumed(WHOLE, logs, killed=11, restored=8)


def test_the_sentence_says_where_it_went_on_and_how_far_each_run_strayed():
    assert repr(drawn(exact=WHOLE, without_it=APART)) == (
        "Killed in step 11, went on after step 8. The loss minus the loss of the run that was not "
        "killed: exact: 0 in every line; without_it: up to about 0.02."
    )


def test_a_gap_below_counts_as_one_above():
    below = [{**line, "loss": line["loss"] - 0.3 * (line["step"] == 12)} for line in WHOLE]
    assert repr(drawn(a=below)).endswith("a: up to about 0.3.")


def test_no_gap_is_said_to_be_0_only_if_it_is():
    nearly = [*WHOLE[:3], {"step": 16, "loss": 0.5 + 1e-9}]
    assert repr(drawn(a=nearly)).endswith("a: up to about 1e-09.")


def test_the_gap_and_the_kill_are_drawn_where_they_are(monkeypatch):
    kept = []
    monkeypatch.setattr(
        "ddp_lessons.views.resumption.picture",
        lambda figure, sentence: kept.append(figure) or theme.picture(figure, sentence),
    )
    drawn(exact=WHOLE, strayed=APART)
    above, exact, strayed = kept[0].axes
    assert list(above.lines[-1].get_xdata()) == [4, 8, 12, 16]
    assert list(exact.lines[-1].get_ydata()) == [0, 0, 0, 0]
    assert list(strayed.lines[-1].get_ydata()) == pytest.approx([0, 0, 0.024, 0.024])
    assert exact.get_ylim() == strayed.get_ylim()  # one scale
    for axes in kept[0].axes:
        assert list(axes.lines[0].get_xdata()) == [11, 11]
        shade = axes.patches[0].get_extents().transformed(axes.transData.inverted())
        assert (shade.x0, shade.x1) == pytest.approx((8, 11))


def test_the_caption_says_what_the_text_says():
    made = drawn(exact=WHOLE)._repr_mimebundle_()
    assert f"<figcaption>{html.escape(made['text/plain'])}</figcaption>" in made["text/html"]


def test_ink_and_paper_are_left_to_the_theme():
    drawing = drawn(exact=WHOLE, strayed=APART).svg.partition("</style>")[2]
    assert "var(--ink)" in drawing
    for colour in (theme.INK, theme.LINE, theme.PAPER, theme.SOFT):
        assert colour not in drawing


def test_the_same_logs_make_the_same_picture():
    assert drawn(exact=WHOLE).svg == drawn(exact=WHOLE).svg


@pytest.mark.parametrize(
    ("whole", "logs", "reason"),
    [
        (WHOLE, {}, "at least one"),
        ([], {"a": []}, "a whole run"),
        (WHOLE, {"a": WHOLE[:-1]}, "'a' has lines for other steps"),
        (WHOLE, {"b": [*WHOLE, WHOLE[-1]]}, "'b' has lines for other steps"),
    ],
)
def test_logs_that_do_not_fit_together_are_not_drawn(whole, logs, reason):
    with pytest.raises(ValueError, match=reason):
        views.resumed(whole, logs, killed=11, restored=8)
