"""Below the lanes of calls: the time, and what each sign in the picture means."""

from __future__ import annotations

from ddp_lessons.run import Run
from ddp_lessons.views.call_layout import LABELLED, Layout
from ddp_lessons.views.theme import INK, LINE, PAPER

LINKED = 40  # meetings that are still linked by a line
UNITS = ((2, "s", 1), (1e-3, "ms", 1e3), (0, "µs", 1e6))  # from how many seconds on
# How an end is drawn (a marker, its face, its size), and what the key says of it.
MARKS = {
    "failed": ("X", INK, 10, "✖ did not reach the end"),
    "left": ("s", INK, 7.5, "■ came to the end"),
    "lost": ("o", PAPER, 7, "○ failed in turn: its peer had gone"),
}


def time_axis(axes: object, run: Run, made: Layout) -> None:
    from matplotlib.ticker import MaxNLocator

    unit, scale = next((unit, scale) for least, unit, scale in UNITS if made.known >= least)
    is_cut = any(lane.open for lane in made.lanes)
    ticks = MaxNLocator(4 if is_cut else 6, steps=[1, 2, 5, 10]).tick_values(0, made.known)
    ticks = [tick for tick in ticks if 0 <= tick <= made.known * 1.001]
    axes.set_xticks(ticks, [f"{tick * scale:.4g}" for tick in ticks])
    axes.grid(axis="x", color=LINE, lw=0.6)
    axes.set_axisbelow(True)
    if is_cut:
        look = {"xycoords": axes.get_xaxis_transform(), "textcoords": "offset points"}
        look |= {"color": INK, "fontsize": 10, "va": "top", "annotation_clip": False}
        axes.annotate("//", (cut(made), 0), (0, -3.5), ha="center", **look)
        told = f"stopped {run.seconds:.3g} s after launch()"
        axes.annotate(told, (made.width, 0), (0, -3.5), ha="right", **look)
    key = signs(run, made, unit, is_cut)
    rows = ["   ·   ".join(key[at : at + 3]) for at in range(0, len(key), 3)]
    axes.set_xlabel("\n".join(rows), color=INK, fontsize=10)


def cut(made: Layout) -> float:
    """Where the axis is cut, if some call never returned: all of the wait would hide the rest."""
    return made.known + 0.12 * (made.width - made.known)


def signs(run: Run, made: Layout, unit: str, is_cut: bool) -> list[str]:
    """What each sign that is in the picture means."""
    bars = [bar for lane in made.lanes for bar in lane.bars]
    called = any(bar.start == 0 for bar in bars)
    key = [f"{unit} since the first {'call' if called else 'rank ended'}"]
    key.append("bar: in the call")
    key.append("hatched: waits for another rank to call")
    if made.met and len(made.met) <= LINKED and len(run) > 1:
        key.append("dots: these calls meet")
    if any(bar.unfit for bar in bars) and len(run) <= LABELLED:
        key.append("≠: these calls do not fit together")
    if any(bar.part for bar in bars):
        key.append("low: a sub-group")
    if any(
        end - start > 0.02 * made.width for lane in made.lanes for start, end, _ in lane.flights
    ):
        key.append("dashes: async, under way")
    kinds = {lane.end.kind for lane in made.lanes if lane.end}
    key += [told for kind, (*_, told) in MARKS.items() if kind in kinds]
    if is_cut:
        key.append("// and arrow: until the run was stopped")
    if any(rank.device.startswith("cuda") for rank in run):
        key.append("on NCCL a call returns when the GPU has it")
    return key
