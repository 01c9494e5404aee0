"""Groups of processes that were started apart: who goes on, who raises, who waits to the end."""

from __future__ import annotations

from ddp_lessons.run import Run
from ddp_lessons.views.theme import (
    INK,
    LINE,
    PAPER,
    SOFT,
    Picture,
    new_figure,
    picture,
    plain_axes,
    rank_colour,
)

APART = 0.9  # of a row, between two starts


def starts(run: Run) -> Picture:
    """What init_process_group did in each process: a lane a process, in the order of the run.

    Each rank has recorded its `start`, the `process` that it stood for ("0/2", its RANK and its
    WORLD_SIZE, and what else there is to say), its `outcome` ("goes on",
    "raises" or "waits"), and `until`, the time at which it went on or raised. Raises KeyError for a
    run that has not.
    """
    names, processes = run.values("start"), run.values("process")
    outcomes, ends = run.values("outcome"), run.values("until")
    zero = min(rank.called for rank in run)
    last = max(record.time for record in run.records) - zero
    figure = new_figure(8.4, 0.7 + 0.3 * (len(run) + APART * len(set(names))))
    axes = plain_axes(figure)
    rows, y = [], 0.0
    for number, rank in enumerate(run):
        new = number == 0 or names[number] != names[number - 1]
        y += (1 + APART if new else 1) if number else 0
        rows.append(y)
        colour = rank_colour(int(processes[number].partition("/")[0]))
        called = rank.called - zero
        until = last if ends[number] is None else ends[number] - zero
        hatched = {"color": PAPER, "edgecolor": colour, "hatch": "/////", "lw": 1.2}
        axes.barh(y, until - called, left=called, height=0.5, **hatched)
        if outcomes[number] == "goes on":
            axes.plot([until, last], [y, y], color=colour, lw=3, solid_capstyle="butt")
            axes.plot([until], [y], "o", color=colour, ms=8, zorder=4)
        elif outcomes[number] == "raises":
            axes.plot([until], [y], "X", color=INK, ms=9, zorder=4)
        axes.text(last * 1.02, y, outcomes[number], color=INK, fontsize=10, va="center")
        if new:
            look = {"color": INK, "fontsize": 11, "fontweight": "bold", "va": "center"}
            axes.text(-0.03 * last, y - 0.75, f"start {names[number]}", ha="right", **look)
    axes.set_yticks(rows, processes)
    axes.set_xlim(-last * 0.02, last * 1.18)
    axes.set_ylim(rows[-1] + 0.7, -1.2)
    axes.set_xticks(range(int(last) + 1))
    axes.tick_params(axis="x", colors=SOFT)
    axes.grid(axis="x", color=LINE, lw=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel(
        "row: RANK/WORLD_SIZE     hatched: in init_process_group\n"
        "dot: goes on     cross: raises     time in seconds",
        color=INK,
        fontsize=10,
    )
    told = {name: [] for name in names}
    for name, outcome in zip(names, outcomes, strict=True):
        told[name].append(outcome)
    sentence = "; ".join(f"{name}: {', '.join(words)}" for name, words in told.items())
    return picture(figure, f"What each process did, start by start. {sentence}.")
