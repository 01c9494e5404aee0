"""Read what the ledger of each rank holds: the parent's side of ledger.py.

Nothing here needs the rank to be alive, or to have ended.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ddp_lessons import ledger_file
from ddp_lessons.ledger_file import SIZE
from ddp_lessons.operations import CODES, DTYPES, NOBODY, OPERATIONS, REDUCE_OPS
from ddp_lessons.run import Call

OPS = {code: name for name, code in CODES.items()}


@dataclass(frozen=True)
class Calls(Sequence):
    """One rank's calls in order, decoded when somebody looks at them.

    `records` are as in the ledger's file, `names` the texts that they refer to by number, `script`
    is the path of what was launched and `shown` what it is called in a report. `whole` is false if
    the last calls are missing, because the disk was full.
    """

    rank: int
    records: bytes = b""
    names: tuple[str, ...] = ("",)
    whole: bool = True
    script: str = ""
    shown: str = ""

    @cached_property
    def _calls(self) -> tuple[Call, ...]:
        return tuple(map(self.decode, self.each()))

    def __len__(self) -> int:
        return len(self.records) // SIZE

    def __getitem__(self, index: int | slice) -> Call | tuple[Call, ...]:
        return self._calls[index]

    def __repr__(self) -> str:
        return f"{len(self)} calls"

    def after(self, count: int) -> Calls:
        """All but the first `count`."""
        return dataclasses.replace(self, records=self.records[count * SIZE :]) if count else self

    def each(self) -> Iterator[bytes]:
        """The records one by one."""
        return (self.records[at : at + SIZE] for at in range(0, len(self.records), SIZE))

    def decode(self, record: bytes) -> Call:
        fields, six = ledger_file.unpack(record)
        op = OPS[fields.op]
        name, ranks = json.loads(self.text(fields.group) or '["", []]')
        paired = OPERATIONS[op].side is not None
        peer = None if fields.peer == NOBODY else fields.peer
        return Call(
            rank=self.rank,
            seq=fields.seq,
            op=op,
            group=tuple(ranks),
            group_name=name,
            index=fields.index,
            peer=peer if paired else None,
            root=None if paired else peer,
            tag=fields.tag,
            reduce_op=REDUCE_OPS[fields.reduce_op] or None,
            shape=six[: fields.dimensions],
            dtype=DTYPES[fields.dtype] or None,
            bytes=fields.bytes,
            detail=self.text(fields.detail),
            file=self._file(fields.file),
            line=fields.line,
            called=fields.called,
            returned=fields.returned or None,
            raised=fields.state in (ledger_file.RAISED, ledger_file.REFUSED),
            asynchronous=bool(fields.flags & ledger_file.ASYNC),
            batched=bool(fields.flags & ledger_file.BATCHED),
            wait_file=self._file(fields.wait_file) or None,
            wait_line=fields.wait_line or None,
            waited=fields.waiting or None,
            done=fields.done or None,
        )

    def text(self, number: int) -> str:
        return self.names[number] if number < len(self.names) else ""

    def _file(self, number: int) -> str:
        path = self.text(number)
        return self.shown if path and path == self.script else Path(path).name


def read(rank: int, folder: Path, script: Path, shown: str) -> Calls:
    """The calls of a rank; none if it kept no ledger."""
    names, whole = read_names(folder)
    try:
        content = (folder / ledger_file.CALLS).read_bytes()
    except FileNotFoundError:
        content = b""
    head, tail = content[: ledger_file.KEEP * SIZE], content[ledger_file.KEEP * SIZE :]
    ring = [tail[at : at + SIZE] for at in range(0, len(tail), SIZE)]
    ring = [record for record in ring if record[ledger_file.STATE] != ledger_file.EMPTY]
    ring.sort(key=lambda record: ledger_file.unpack(record)[0].seq)
    records = head[: written(head)] + b"".join(ring)
    return Calls(rank, records, names, whole, str(script), shown)


def written(content: bytes) -> int:
    """How many bytes of whole records stand at the beginning."""
    size = len(content) // SIZE * SIZE
    empty = (
        at for at in range(0, size, SIZE) if content[at + ledger_file.STATE] == ledger_file.EMPTY
    )
    return next(empty, size)


def read_names(folder: Path) -> tuple[tuple[str, ...], bool]:
    """The texts by number, and whether the ledger is whole. Number 0 is the empty text."""
    try:
        lines = (folder / ledger_file.NAMES).read_bytes().split(b"\n")
    except FileNotFoundError:
        return ("",), True
    found = dict(json.loads(line) for line in lines[:-1] if line != ledger_file.LOST)
    texts = tuple(found.get(number, "") for number in range(max(found, default=0) + 1))
    return texts, ledger_file.LOST not in lines


class Tail:
    """The growing end of a rank's ledger. What a very long run writes over and over again is not
    followed."""

    def __init__(self, rank: int, folder: Path):
        self._rank, self._folder, self._read = rank, folder, 0
        self._names = ("",)

    def unread(self) -> Calls:
        """The calls that have not been marked as read."""
        try:
            with open(self._folder / ledger_file.CALLS, "rb") as file:
                file.seek(self._read)
                content = file.read(ledger_file.KEEP * SIZE - self._read)
        except FileNotFoundError:
            content = b""
        records = content[: written(content)]
        if records:
            self._names = read_names(self._folder)[0]
        return Calls(self._rank, records, self._names)

    def read(self, count: int) -> None:
        """Mark that many calls as read."""
        self._read += count * SIZE

    def whole(self) -> Calls:
        """All calls so far, all marked as read."""
        self._read = 0
        found = self.unread()
        self.read(len(found))
        return found
