"""Where the calls of a run stand in a picture: times to spans, rows and labels, no drawing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ddp_lessons.meetings import meetings
from ddp_lessons.run import Call, Meeting, Rank, Run
from ddp_lessons.stall import told

ROWS = 4  # bars of one rank above each other: asynchronous calls that are under way together
LEVELS = 3  # labels of one rank above each other
OPEN = 0.35  # share of the picture for calls that never returned
PIECES = 1200  # bars of all ranks that are still drawn one by one
LABELLED = 16  # ranks of which the calls still have labels
MANY = 12  # calls of a rank from which on each label is given once


@dataclass(frozen=True)
class Bar:
    """A rank is in `call` from `start` to `end`, in seconds from the run's first call, and all that
    it meets have been called at `met`. `open`: it never returned, and `end` is the picture's.
    `part`: of a sub-group."""

    call: Call
    start: float
    met: float
    end: float
    row: int
    open: bool = False
    issue: bool = False  # of an asynchronous call, which returns at once
    wait: bool = False  # for an asynchronous call
    part: bool = False
    unfit: bool = False  # among the calls that do not fit together

    @property
    def label(self) -> str:
        call = self.call
        if self.wait:
            name, line = "wait", call.wait_line
        else:
            name, line = f"{'async ' if self.issue else ''}{told(call)}", call.line
        if self.part and call.peer is None and not self.wait:
            few = len(call.group) <= 4
            who = f"ranks {', '.join(map(str, call.group))}" if few else f"{len(call.group)} ranks"
            name = f"{name} ({who})"
        end = ": never returned" if self.open else ": raised" if call.raised else ""
        return f"{'≠ ' if self.unfit else ''}{name}, line {line}{end}"

    @property
    def first(self) -> bool:
        """Whether the bar should have its label before others get theirs."""
        return self.open or self.unfit or self.call.raised


@dataclass(frozen=True)
class Label:
    """A text that begins at `left`, on a level above the lane, with a line down to `x`."""

    text: str
    x: float
    left: float
    level: int
    row: int = 0
    bold: bool = False


@dataclass
class Lane:
    """One rank's bars; for its asynchronous calls the (start, end, row) between the call and the
    wait for it; when and how its script failed."""

    rank: Rank
    bars: list[Bar] = field(default_factory=list)
    flights: list[tuple[float, float, int]] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    failed: float | None = None

    @property
    def rows(self) -> int:
        return max((bar.row for bar in self.bars), default=0) + 1

    @property
    def levels(self) -> int:
        return max((label.level for label in self.labels), default=-1) + 1

    @property
    def open(self) -> bool:
        return any(bar.open for bar in self.bars)


@dataclass(frozen=True)
class Layout:
    """All lanes from 0 to `width` seconds. `known` is the last time that something happened, `zero`
    the first call in monotonic seconds; `met` are the meetings to which all came."""

    lanes: list[Lane]
    met: list[Meeting]
    zero: float
    known: float
    width: float


def layout(run: Run) -> Layout:
    """Raises ValueError if no rank made a call."""
    if not run.calls:
        raise ValueError(
            "no rank of this run made a communication call of its own; what DDP calls inside torch "
            "is not recorded"
        )
    zero = min(call.called for call in run.calls)
    known = max(max(times(call)) for call in run.calls) - zero
    failed = [r.ended - zero for r in run if r.failure and r.ended is not None]
    known = max([known, *failed, 1e-5])
    width = known / (1 - OPEN) if any(is_open(call) for call in run.calls) else known
    met = meetings(run)
    last = {
        (call.rank, call.seq): float("inf") if meeting.missing else meeting.last - zero
        for meeting in met
        for call in meeting.calls
    }
    unfit = {(call.rank, call.seq) for meeting in run.mismatches for call in meeting.calls}
    lanes = [lane(rank, last, unfit, zero, width, len(run)) for rank in run]
    return Layout(lanes, [one for one in met if not one.missing], zero, known, width)


def times(call: Call) -> list[float]:
    known = (call.called, call.returned, call.waited, call.done)
    return [time for time in known if time is not None]


def is_open(call: Call) -> bool:
    return call.returned is None or (call.waited is not None and call.done is None)


def lane(
    rank: Rank,
    last: Mapping[tuple[int, int], float],
    unfit: Collection[tuple[int, int]],
    zero: float,
    width: float,
    size: int,
) -> Lane:
    made = Lane(rank)
    if rank.failure and rank.ended is not None:
        made.failed = rank.ended - zero
    ends: list[float] = []  # of the last bar in each row
    for call in rank.calls:
        start = call.called - zero
        end = width if is_open(call) else call.end - zero
        row = next((row for row, when in enumerate(ends) if when <= start), len(ends))
        row = min(row, ROWS - 1)
        ends[row : row + 1] = [max([end, *ends[row : row + 1]])]
        met = min(last.get((call.rank, call.seq), start), width)
        more = {"part": 1 < len(call.group) < size, "unfit": (call.rank, call.seq) in unfit}
        returned = width if call.returned is None else call.returned - zero
        issue = call.asynchronous and call.returned is not None
        cut = start if issue else min(max(met, start), returned)
        made.bars.append(
            Bar(call, start, cut, returned, row, call.returned is None, issue=issue, **more)
        )
        if call.waited is not None:
            begin = call.waited - zero
            made.flights.append((returned, begin, row))
            cut = min(max(met, begin), end)
            made.bars.append(Bar(call, begin, cut, end, row, call.done is None, wait=True, **more))
    return made


Spans = list[tuple[float, float]]


def spans(bars: Sequence[Bar], least: float, width: float, merge: bool) -> tuple[Spans, Spans]:
    """The (start, length) in which bars wait, and in which they do not, none shorter than `least`.
    To merge is to draw as one what nobody could tell apart."""
    hatched, solid = [], []
    for bar in bars:
        # What is open has not been seen to go on.
        cut = bar.end if bar.open else bar.met
        parts = [(bar.start, cut, hatched), (cut, bar.end, solid)]
        parts = [part for part in parts if part[1] - part[0] >= least]
        if not parts:
            waits = cut - bar.start > bar.end - cut and not merge
            parts = [(bar.start, bar.end, hatched if waits else solid)]
        elif len(parts) == 1:
            parts = [(bar.start, bar.end, parts[0][2])]
        for start, end, into in parts:
            into.append((start, end))
    if merge:
        hatched, solid = joined(hatched, least), joined(solid, least)
    return seen(hatched, least, width), seen(solid, least, width)


def joined(found: Spans, gap: float) -> Spans:
    made: list[list[float]] = []
    for start, end in sorted(found):
        if made and start <= made[-1][1] + gap:
            made[-1][1] = max(made[-1][1], end)
        else:
            made.append([start, end])
    return [(start, end) for start, end in made]


def seen(found: Spans, least: float, width: float) -> Spans:
    """Starts and lengths of these starts and ends, long enough to be seen."""
    return [(min(start, width - least), max(end - start, least)) for start, end in found]


def place_labels(lane: Lane, width: float, per_letter: float) -> None:
    """Give the bars labels where there is room, first those that went wrong, then the longest. A
    label stands above its bar, or higher with a line down to it."""
    order = sorted(lane.bars, key=lambda bar: (not bar.first, bar.start - bar.end))
    wanted = [(bar.label, bar.start, bar.row, bar.first) for bar in order]
    if len(lane.rank.calls) > MANY:
        wanted = list({text: (text, *rest) for text, *rest in reversed(wanted)}.values())[::-1]
    failure = lane.rank.failure
    if failure and lane.failed is not None and not any(call.raised for call in lane.rank.calls):
        line = f", line {failure.line}" if failure.line else ""
        wanted.insert(0, (f"{failure.kind}{line}", lane.failed, 0, True))
    taken: list[Spans] = [[] for _ in range(LEVELS)]
    hair = per_letter / 3
    for text, x, row, bold in wanted[: 40 * LEVELS]:
        size = (len(text) * (1.12 if bold else 1) + 1) * per_letter
        left = x if x + size <= width else max(0.0, width - size)
        foot = (x - hair, x + hair)
        for level in range(LEVELS):
            clear = all(is_free(taken[below], *foot) for below in range(level))
            if clear and is_free(taken[level], left, left + size):
                taken[level].append((left, left + size))
                for below in range(level):
                    taken[below].append(foot)
                lane.labels.append(Label(text, x, left, level, row, bold))
                break


def is_free(taken: Spans, left: float, right: float) -> bool:
    return all(right <= start or end <= left for start, end in taken)
