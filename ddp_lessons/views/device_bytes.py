"""Stacked bytes per device, by kind, for several runs on one scale."""

from __future__ import annotations

from collections.abc import Mapping

from ddp_lessons.run import Run
from ddp_lessons.views.theme import INK, LINE, PAPER, Picture, new_figure, picture, plain_axes

# Bottom to top. Each kind has a colour and a hatch, so that colour alone never carries it.
KINDS = {
    "parameters": ("#1f77b4", ""),
    "gradients": ("#12926e", "//"),
    "optimizer state": ("#8a7a00", ""),
    "DDP buckets": ("#7b6fd0", "xx"),
    "inputs": ("#6f7d86", ""),
    "activations": ("#b5599b", "\\\\"),
    "outputs and loss": ("#d1600a", ""),
}


def bytes_per_device(runs: Mapping[str, Run]) -> Picture:
    """What each device held during one step: runs by title, from records named "held".

    Each such record has device (a number), kind (one of KINDS) and bytes. A record named "measured"
    (device, peak in bytes) adds a dashed mark: what the device's own allocator saw.
    """
    bars = [
        (title, device, kinds)
        for title, run in runs.items()
        for device, kinds in sorted(held(run).items())
    ]
    figure = new_figure(7.8, 3.9)
    axes = plain_axes(figure)
    positions, x = [], 0.0
    for index, (title, _, _) in enumerate(bars):
        x += 0 if index == 0 else (1.0 if bars[index - 1][0] == title else 1.6)
        positions.append(x)
    for (_, _, kinds), x in zip(bars, positions, strict=True):
        bottom = 0.0
        for kind, (colour, hatch) in KINDS.items():
            size = kinds.get(kind, 0) / 1e6
            if size:
                axes.bar(x, size, 0.78, bottom, color=colour, hatch=hatch, ec=PAPER, lw=0.8)
                bottom += size
        axes.text(
            x,
            bottom + 0.25,
            f"{bottom:.0f} MB",
            ha="center",
            color=INK,
            fontsize=11,
            fontweight="bold",
        )
    for (title, device, _), x in zip(bars, positions, strict=True):
        for peak in measured(runs[title], device):
            axes.plot([x - 0.45, x + 0.45], [peak / 1e6] * 2, color=INK, lw=2, ls=(0, (2, 1)))
            axes.text(x + 0.47, peak / 1e6, "measured", color=INK, fontsize=10, va="center")
    # One process that fills several devices, or one device a rank.
    labels = [
        f"{'device' if runs[title].world_size == 1 else 'rank'} {device}"
        for title, device, _ in bars
    ]
    axes.set_xticks(positions, labels)
    for title in runs:
        centre = [x for (name, _, _), x in zip(bars, positions, strict=True) if name == title]
        axes.text(
            sum(centre) / len(centre),
            -0.1,
            title,
            transform=axes.get_xaxis_transform(),
            ha="center",
            va="top",
            color=INK,
            fontsize=11,
            fontweight="bold",
        )
    axes.set_ylabel("MB", color=INK)
    axes.grid(axis="y", color=LINE, lw=0.6)
    axes.set_axisbelow(True)
    axes.margins(y=0.1)
    _label_kinds(axes, bars, positions)
    return picture(figure, _sentence(bars))


def held(run: Run) -> dict[int, dict[str, int]]:
    """Bytes by device and kind."""
    devices: dict[int, dict[str, int]] = {}
    for record in run.records:
        if record.name == "held":
            kinds = devices.setdefault(record.values["device"], {})
            kind = record.values["kind"]
            kinds[kind] = kinds.get(kind, 0) + record.values["bytes"]
    return devices


def measured(run: Run, device: int) -> list[int]:
    """The peak bytes that the run measured on that device, if it did."""
    found = [r.values for r in run.records if r.name == "measured"]
    return [values["peak"] for values in found if values["device"] == device]


def _label_kinds(axes: object, bars: list, positions: list[float]) -> None:
    """Name each kind once, beside the last bar, with a line to its part."""
    x, (_, _, kinds) = positions[-1], bars[-1]
    bottom, lowest = 0.0, 0.0
    for kind, (colour, _) in KINDS.items():
        size = kinds.get(kind, 0) / 1e6
        if size:
            middle = bottom + size / 2
            level = max(middle, lowest)
            axes.plot([x + 0.39, x + 0.6], [middle, level], color=colour, lw=1.5)
            axes.text(x + 0.65, level, kind, va="center", color=INK, fontsize=10)
            bottom, lowest = bottom + size, level + 1.4
    axes.set_xlim(-0.6, x + 2.0)


def _sentence(bars: list) -> str:
    parts: dict[str, list[str]] = {}
    for title, _, kinds in bars:
        parts.setdefault(title, []).append(f"{sum(kinds.values()) / 1e6:.0f}")
    told = [f"{title}: {' and '.join(sizes)} MB" for title, sizes in parts.items()]
    return "What each device holds in one training step. " + "; ".join(told) + "."
