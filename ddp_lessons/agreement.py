"""Do the ranks' calls fit together? Pairs them as torch does and compares what has to agree.

Within a group, the first call of one rank meets the first call of every other, and so on, whatever
their lines are. A send meets the recv of its receiver: by sender, receiver and tag, in order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ddp_lessons import ledger_file
from ddp_lessons.calls import OPS, Calls
from ddp_lessons.ledger_file import ANYBODY, REFUSED, UNKNOWN, Fields
from ddp_lessons.operations import (
    ALIASES,
    DETAIL,
    DTYPE,
    EXCHANGES,
    LENGTH,
    MAKES_GROUPS,
    OPERATIONS,
    REDUCE_OP,
    ROOT,
    SHAPE,
    SIZE,
    Operation,
    read_parts,
)
from ddp_lessons.run import Meeting

SEND, RECV = "send", "recv"


@dataclass
class _Met:
    """What is known of one meeting: by rank, what has to agree and the record."""

    members: tuple[int, ...]
    came: dict[int, tuple[tuple, bytes]] = field(default_factory=dict)


class Book:
    """Takes the records of all ranks, in each rank's own order, and knows what disagrees so far and
    what is open. Meetings in which all agree are forgotten."""

    def __init__(self) -> None:
        self._open: dict[tuple, _Met] = {}
        self._made: dict[tuple, int] = {}  # by stream and rank: how many calls
        self._disagree: list[_Met] = []
        self._anybody: set[tuple] = set()  # receivers that took from anybody, by group
        self._calls: dict[int, Calls] = {}
        self._groups: dict[str, tuple] = {}
        self._refused: dict[tuple, int] = {}  # by stream and rank: calls that took part in nothing
        self._next: dict[int, int] = {}  # by rank: the number of its next call
        self._gaps: set[int] = set()  # ranks of which records have been written over
        self._seen_after: set[tuple] = set()  # streams of which such a rank has later records
        # A training loop makes the same few calls again and again: what a record means, by the
        # part of it that says what was called.
        self._known: dict[tuple[int, bytes], tuple[tuple, tuple, tuple]] = {}

    def skip(self, ledgers: Sequence[Calls]) -> int:
        """How many records of each rank were taken at once, because the first ones of all ranks
        are alike: 0 unless all are calls of the same kind of one group with all these ranks.

        The same as to take them one by one, a hundred times faster: for loops of many calls."""
        count = min(map(len, ledgers), default=0)
        if not count or self._open:
            return 0
        records = [calls.records[: count * ledger_file.SIZE] for calls in ledgers]
        fields, _ = ledger_file.unpack(records[0][: ledger_file.SIZE])
        group = ledgers[0].text(fields.group)
        ops = {OPERATIONS[OPS[code]] for code in ledger_file.column(records[0], "op")}
        one_group = all(calls.text(fields.group) == group for calls in ledgers)
        ranks = json.loads(group or '["", []]')[1]
        if not one_group or sorted(ranks) != sorted(calls.rank for calls in ledgers):
            return 0
        if not all(operation.whole for operation in ops) or not ledger_file.alike(records):
            return 0
        for calls in ledgers:
            self._calls[calls.rank] = calls
            self._next[calls.rank] = ledger_file.seq(calls.records[: ledger_file.SIZE]) + count
            last = calls.records[(count - 1) * ledger_file.SIZE : count * ledger_file.SIZE]
            self._made[(group,), calls.rank] = ledger_file.index(last) + 1
        return count

    def take(self, calls: Calls) -> None:
        """The next records of a rank."""
        rank = calls.rank
        self._calls[rank] = calls
        for record in calls.each():
            self._note_gap(rank, ledger_file.seq(record))
            key = rank, ledger_file.constant(record)
            known = self._known.get(key)
            if known is None:
                known = self._known[key] = self._sort(rank, record, calls)
            stream, members, agreed = known
            if record[ledger_file.STATE] == REFUSED:
                self._refused[stream, rank] = self._refused.get((stream, rank), 0) + 1
                continue
            index = ledger_file.index(record) - self._refused.get((stream, rank), 0)
            self._made[stream, rank] = index + 1
            if rank in self._gaps:
                self._seen_after.add((stream, rank))
            met = self._open.get((stream, index))
            if met is None:
                met = self._open[stream, index] = _Met(members)
            met.came[rank] = agreed, record
            if len(met.came) == len(members):
                del self._open[stream, index]
                if differing(met.came):
                    self._disagree.append(met)

    def _note_gap(self, rank: int, seq: int) -> None:
        if seq != self._next.get(rank, 0):
            self._gaps.add(rank)
        self._next[rank] = seq + 1

    def _sort(self, rank: int, record: bytes, calls: Calls) -> tuple[tuple, tuple, tuple]:
        """The stream in which a record is matched, who takes part, and what has to agree."""
        fields, six = ledger_file.unpack(record)
        group = calls.text(fields.group)
        ranks = self._groups.get(group)
        if ranks is None:
            ranks = self._groups[group] = tuple(json.loads(group or '["", []]')[1])
        operation = OPERATIONS[OPS[fields.op]]
        if operation.side is None:
            own_order = ("groups",) if operation.name in MAKES_GROUPS else ()
            return (group, *own_order), ranks, agreed(operation, fields, six, calls)
        if fields.flags & ANYBODY:
            self._anybody.add((group, rank))
        peer = fields.peer
        pair = (rank, peer) if operation.side == SEND else (peer, rank)
        objects = "object" in operation.name
        facts = ("objects", six[0]) if objects else ("tensor", fields.bytes, fields.dtype)
        return (group, *pair, fields.tag), pair, facts

    def disagreements(self) -> list[Meeting]:
        """The meetings whose calls differ in what has to agree, in the order of the program."""
        found = [met for met in self._disagree if not self._unknowable(met)]
        # Not all have come, and those that have differ already.
        found += [met for met in self._waiting() if differing(met.came)]
        return sorted(map(self._told, found), key=in_program_order)

    def unmet(self) -> list[Meeting]:
        """The meetings to which not all members have come, in the order of the program. What an
        overwritten record may have met does not count."""
        return sorted(map(self._told, self._waiting()), key=in_program_order)

    def _waiting(self) -> Iterator[_Met]:
        for (stream, index), met in self._open.items():
            late = [m for m in met.members if self._made.get((stream, m), 0) <= index]
            lost = [m for m in late if m in self._gaps and (stream, m) not in self._seen_after]
            if late and not lost and not self._unknowable(met):
                yield met

    def _unknowable(self, met: _Met) -> bool:
        """Whether a recv from anybody may have taken what would be matched here."""
        rank, (_, record) = next(iter(met.came.items()))
        fields, _ = ledger_file.unpack(record)
        group = self._calls[rank].text(fields.group)
        paired = OPERATIONS[OPS[fields.op]].side is not None
        return paired and any((group, member) in self._anybody for member in met.members)

    def _told(self, met: _Met) -> Meeting:
        ranks = sorted(met.came)
        calls = tuple(self._calls[rank].decode(met.came[rank][1]) for rank in ranks)
        missing = tuple(member for member in met.members if member not in met.came)
        first = met.came[ranks[0]][1]
        stream = self._known[ranks[0], ledger_file.constant(first)][0]
        made = tuple(self._made.get((stream, member), 0) for member in missing)
        return Meeting(calls, missing, differing(met.came), made)


def in_program_order(meeting: Meeting) -> tuple:
    """Not by time, which is chance where calls do not depend on each other."""
    return min(call.seq for call in meeting.calls), meeting.calls[0].group, meeting.calls[0].rank


def book(ledgers: Iterable[Calls]) -> Book:
    """The book of whole ledgers. A rank that made no call needs none."""
    made = Book()
    there = [calls for calls in ledgers if calls]
    count = made.skip(there)
    for calls in there:
        made.take(calls.after(count))
    return made


# What the numbers in a fingerprint stand for, in the order in which a difference is named.
ORDER = ("op", ROOT, DTYPE, SHAPE, REDUCE_OP, DETAIL, LENGTH)


def agreed(operation: Operation, fields: Fields, six: tuple[int, ...], calls: Calls) -> tuple:
    """What must be the same on all ranks, in the order of ORDER; None for what may differ."""
    agree = operation.agree
    if operation.many and fields.detail:
        agree = agree - {SHAPE}  # the list has parts of different sizes, this rank's among them
    unknown = fields.flags & UNKNOWN
    exchanged = (calls.text(fields.detail) or None) if operation.name in EXCHANGES else None
    return (
        ALIASES.get(operation.name, operation.name),
        fields.peer if ROOT in agree else None,
        fields.dtype if DTYPE in agree else None,
        shape_of(agree, fields, six),
        fields.reduce_op if REDUCE_OP in agree else None,
        ANYTHING if unknown else calls.text(fields.detail) if DETAIL in agree else None,
        six[0] if LENGTH in agree else None,
        exchanged,
    )


class _Anything:
    """Equal to whatever it is compared with: what a record could not keep."""

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = object.__hash__


ANYTHING = _Anything()


def shape_of(agree: frozenset[str], fields: Fields, six: tuple[int, ...]) -> tuple | None:
    """What must be the same of the shape: all of it, or how many bytes it takes."""
    if SHAPE in agree:
        return fields.dimensions, six, fields.bytes  # six dimensions are not always all
    return (fields.bytes,) if SIZE in agree else None


def differing(came: dict[int, tuple[tuple, bytes]]) -> str:
    """What the calls that have come differ in; "" for nothing."""
    told = [facts for facts, _ in came.values()]
    if all(facts == told[0] for facts in told) and told[0][-1] is None:
        return ""
    if told[0][0] in ("tensor", "objects"):
        return differing_pair(told)
    for place, name in enumerate(ORDER):
        if any(facts[place] != told[0][place] for facts in told):
            return name
    return differing_parts({rank: facts[-1] for rank, (facts, _) in came.items()})


def differing_pair(told: list[tuple]) -> str:
    """What a send and the recv that it meets differ in."""
    if len(told) < 2 or told[0] == told[1]:
        return ""
    if told[0][0] != told[1][0]:
        return "op"
    return "count" if told[0][1] != told[1][1] else DTYPE


def differing_parts(parts: dict[int, str | None]) -> str:
    """all_to_all: whether some rank sends another one more or less than that one expects."""
    if any(text is None for text in parts.values()):
        return ""
    read = {rank: read_parts(text) for rank, text in parts.items()}
    ranks = sorted(read)
    # With members missing the places in the lists are not known.
    if any(len(sent) != len(ranks) or len(got) != len(ranks) for sent, got in read.values()):
        return ""
    for i, one in enumerate(ranks):
        for j, other in enumerate(ranks):
            if read[one][0][j] != read[other][1][i]:
                return "count"
    return ""
