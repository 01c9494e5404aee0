"""Where the calls of a run stand in a picture: times to spans, rows and labels, no drawing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ddp_lessons.meetings import meetings
from ddp_lessons.run import Call, Meeting, Rank, Run, say
from ddp_lessons.stall import told
from ddp_lessons.views.call_labels import BOLD, LETTERS, Label
from ddp_lessons.views.ends import End, ends, times

ROWS = 4  # bars of one rank above each other: asynchronous calls that are under way together
OPEN = 0.35  # share of the picture for calls that never returned
PIECES = 1200  # bars of all ranks that are still drawn one by one
LABELLED = 16  # ranks of which the calls still have labels


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
    lost: bool = False  # raised because a peer had gone, which the rank's end says

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
        end = ": never returned" if self.open else ": raised" if self.raised else ""
        return f"{'≠ ' if self.unfit else ''}{name}, line {line}{end}"

    @property
    def raised(self) -> bool:
        return self.call.raised and not self.lost

    @property
    def first(self) -> bool:
        """Whether the bar should have its label before others get theirs."""
        return self.open or self.unfit or self.raised or self.lost


@dataclass
class Lane:
    """One rank's bars; for its asynchronous calls the (start, end, row) between the call and the
    wait for it; `end` says how it ended, if that matters, and `ended` when."""

    rank: Rank
    bars: list[Bar] = field(default_factory=list)
    flights: list[tuple[float, float, int]] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    end: End | None = None
    ended: float = 0.0

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
    the first of all that, in monotonic seconds; `met` are the meetings to which all came."""

    lanes: list[Lane]
    met: list[Meeting]
    zero: float
    known: float
    width: float


def layout(run: Run) -> Layout:
    """Raises ValueError if no rank made a call."""
    if not run.calls:
        text = (
            "no rank of this run made a communication call of its own; what DDP calls inside torch "
            "is not recorded"
        )
        raise say(ValueError(text))
    ended = ends(run)
    marks = [end.time for end in ended.values()]
    zero = min([call.called for call in run.calls] + marks)
    known = max(times(run.calls) + marks) - zero
    known = max(known, 1e-5)
    width = known / (1 - OPEN) if any(never_returned(call, run) for call in run.calls) else known
    if len(run) <= LABELLED:
        width = max([width, *(room(end, end.time - zero) for end in ended.values())])
    met = meetings(run)
    last = {
        (call.rank, call.seq): float("inf") if meeting.missing else meeting.last - zero
        for meeting in met
        for call in meeting.calls
    }
    unfit = {(call.rank, call.seq) for meeting in run.mismatches for call in meeting.calls}
    lanes = [lane(rank, ended.get(rank.rank), last, unfit, zero, width, len(run)) for rank in run]
    return Layout(lanes, [one for one in met if not one.missing], zero, known, width)


def room(end: End, at: float) -> float:
    """How wide a picture is in which the words of an end stand right of its mark."""
    return at / (1 - (len(end.words) * BOLD + 3) / LETTERS)


def is_open(call: Call) -> bool:
    return call.returned is None or (call.waited is not None and call.done is None)


def never_returned(call: Call, run: Run) -> bool:
    """Whether a rank was in a call until it was stopped. Its own end ends a call, too."""
    return is_open(call) and run[call.rank].exitcode is None


def lane(
    rank: Rank,
    end_of_rank: End | None,
    last: Mapping[tuple[int, int], float],
    unfit: Collection[tuple[int, int]],
    zero: float,
    width: float,
    size: int,
) -> Lane:
    made = Lane(rank, end=end_of_rank, ended=end_of_rank.time - zero if end_of_rank else 0.0)
    until = width if rank.exitcode is None or not end_of_rank else made.ended
    stopped = rank.exitcode is None
    lost = end_of_rank is not None and end_of_rank.kind == "lost"
    ends: list[float] = []  # of the last bar in each row
    for call in rank.calls:
        start = call.called - zero
        end = until if is_open(call) else call.end - zero
        row = next((row for row, when in enumerate(ends) if when <= start), len(ends))
        row = min(row, ROWS - 1)
        ends[row : row + 1] = [max([end, *ends[row : row + 1]])]
        met = min(last.get((call.rank, call.seq), start), width)
        more = {"part": 1 < len(call.group) < size, "unfit": (call.rank, call.seq) in unfit}
        more["lost"] = lost and call.raised and call is rank.calls[-1]
        returned = until if call.returned is None else call.returned - zero
        issue = call.asynchronous and call.returned is not None
        cut = start if issue else min(max(met, start), returned)
        made.bars.append(
            Bar(
                call,
                start,
                cut,
                returned,
                row,
                open=stopped and call.returned is None,
                issue=issue,
                **more,
            )
        )
        if call.waited is not None:
            begin = call.waited - zero
            made.flights.append((returned, begin, row))
            cut = min(max(met, begin), end)
            made.bars.append(
                Bar(call, begin, cut, end, row, stopped and call.done is None, wait=True, **more)
            )
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
