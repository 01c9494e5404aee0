"""Read what the ledger of each rank holds: the parent's side of ledger.py.

Nothing here needs the rank to be alive, or to have ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ddp_lessons import ledger
from ddp_lessons.operations import CODES, DTYPES, OPERATIONS, REDUCE_OPS
from ddp_lessons.run import Call

OPS = {code: name for name, code in CODES.items()}
SIZE = ledger.RECORD.size


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
        return tuple(self.decode(fields) for fields in self.fields())

    def __len__(self) -> int:
        return len(self.records) // SIZE

    def __getitem__(self, index: int | slice) -> Call | tuple[Call, ...]:
        return self._calls[index]

    def __repr__(self) -> str:
        return f"{len(self)} calls"

    def fields(self) -> Iterator[tuple]:
        """Each record as the numbers of ledger.RECORD."""
        return ledger.RECORD.iter_unpack(self.records)

    def decode(self, fields: tuple) -> Call:
        called, returned, waiting, done, size, seq, line, wait_line = fields[:8]
        peer, tag, index, group, file, wait_file, detail = fields[8:15]
        op, reduce_op, dtype, dimensions, flags, state = fields[15:21]
        name, ranks = json.loads(self.text(group) or '["", []]')
        paired = OPERATIONS[OPS[op]].side is not None
        return Call(
            rank=self.rank,
            seq=seq,
            op=OPS[op],
            group=tuple(ranks),
            group_name=name,
            index=index,
            peer=peer if paired and peer != ledger.NOBODY else None,
            root=None if paired or peer == ledger.NOBODY else peer,
            tag=tag,
            reduce_op=REDUCE_OPS[reduce_op] or None,
            shape=fields[21 : 21 + dimensions],
            dtype=DTYPES[dtype] or None,
            bytes=size,
            detail=self.text(detail),
            file=self._file(file),
            line=line,
            called=called,
            returned=returned or None,
            raised=state == ledger.RAISED,
            asynchronous=bool(flags & ledger.ASYNC),
            batched=bool(flags & ledger.BATCHED),
            wait_file=self._file(wait_file) or None,
            wait_line=wait_line or None,
            waited=waiting or None,
            done=done or None,
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
        content = (folder / ledger.FILE).read_bytes()
    except FileNotFoundError:
        content = b""
    head, tail = content[: ledger.KEEP * SIZE], content[ledger.KEEP * SIZE :]
    ring = [tail[at : at + SIZE] for at in range(0, len(tail), SIZE)]
    ring = [record for record in ring if record[ledger.STATE] != ledger.EMPTY]
    ring.sort(key=lambda record: ledger.RECORD.unpack(record)[5])  # by seq
    records = head[: written(head)] + b"".join(ring)
    return Calls(rank, records, names, whole, str(script), shown)


def written(content: bytes) -> int:
    """How many bytes of whole records stand at the beginning."""
    size = len(content) // SIZE * SIZE
    empty = (at for at in range(0, size, SIZE) if content[at + ledger.STATE] == ledger.EMPTY)
    return next(empty, size)


def read_names(folder: Path) -> tuple[tuple[str, ...], bool]:
    """The texts by number, and whether the ledger is whole. Number 0 is the empty text."""
    try:
        lines = (folder / ledger.NAMES).read_bytes().split(b"\n")
    except FileNotFoundError:
        return ("",), True
    found = dict(json.loads(line) for line in lines[:-1] if line != ledger.LOST)
    texts = tuple(found.get(number, "") for number in range(max(found, default=0) + 1))
    return texts, ledger.LOST not in lines


class Tail:
    """The growing end of a rank's ledger: next() gives the calls that are new since the last one.
    What a very long run writes over and over again is not followed."""

    def __init__(self, rank: int, folder: Path):
        self._rank, self._folder, self._seen = rank, folder, 0
        self._names = ("",)

    def next(self) -> Calls:
        try:
            with open(self._folder / ledger.FILE, "rb") as file:
                file.seek(self._seen)
                content = file.read(ledger.KEEP * SIZE - self._seen)
        except FileNotFoundError:
            content = b""
        records = content[: written(content)]
        self._seen += len(records)
        if records:
            self._names = read_names(self._folder)[0]
        return Calls(self._rank, records, self._names)
